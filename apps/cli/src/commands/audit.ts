/** `remuda audit`: what was done by whom, newest first. */
import { type AuditEntry, AuditPage } from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

export interface AuditOptions extends ApiOptions {
  limit: number;
  before?: string;
}

export async function audit(options: AuditOptions, { terminal, config }: CommandContext): Promise<number> {
  const query = new URLSearchParams({ limit: String(options.limit) });
  if (options.before !== undefined) query.set('before', options.before);
  const call = { method: 'GET', path: `/v1/admin/audit?${query}` } as const;
  const { entries } = await apiOf(options, config).admin(call, AuditPage);
  if (options.json) printJson(terminal, entries);
  else for (const line of auditLines(entries, options, terminal)) terminal.out(line);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'time' },
  { title: 'key' },
  { title: 'who', shrinkTo: 8, wrap: true },
  { title: 'what', shrinkTo: 20, wrap: true },
  { title: 'to', shrinkTo: 12, wrap: true },
  { title: 'outcome' },
];

export function auditLines(
  entries: readonly AuditEntry[],
  { limit }: Pick<AuditOptions, 'limit'>,
  { colours, width }: Terminal,
): string[] {
  if (entries.length === 0)
    return ['Nothing that changes models, keys, tenants or webhook endpoints is on record.'];
  const rows = entries.map((entry): (string | Cell)[] => [
    `${entry.at.slice(0, 19).replace('T', ' ')}Z`,
    entry.key_id ?? '-',
    entry.actor === null ? entry.address : `${entry.actor} at ${entry.address}`,
    entry.action.replace(/\/v1\/(admin\/)?/, ''),
    Object.entries(entry.target)
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    outcomeOf(entry, colours),
  ]);
  const oldest = entries.at(-1)?.id;
  const more =
    entries.length < limit
      ? []
      : [colours.dim(`older ones: remuda audit --limit ${limit} --before ${oldest}`)];
  return [...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }), ...more];
}

function outcomeOf({ status, code }: AuditEntry, { green, red }: Terminal['colours']): Cell {
  return status < 400 ? { text: String(status), paint: green } : { text: `${status} ${code}`, paint: red };
}
