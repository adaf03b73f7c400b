/** `remuda keys list|show|revoke`: API keys without their secrets. Making one: create-key.ts. */
import { ApiKey, ApiKeyList } from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import { actor } from './actor.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

const PATH = '/v1/admin/keys';

export async function listKeys(
  options: ApiOptions & { tenant?: string },
  { terminal, config }: CommandContext,
): Promise<number> {
  const query = options.tenant === undefined ? '' : `?tenant=${encodeURIComponent(options.tenant)}`;
  const { keys } = await apiOf(options, config).admin({ method: 'GET', path: `${PATH}${query}` }, ApiKeyList);
  if (options.json) printJson(terminal, keys);
  else for (const line of keyLines(keys, terminal)) terminal.out(line);
  return EXIT.ok;
}

export async function showKey(
  id: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const path = `${PATH}/${encodeURIComponent(id)}`;
  return show(await apiOf(options, config).admin({ method: 'GET', path }, ApiKey), options, terminal);
}

export async function revokeKey(
  id: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const path = `${PATH}/${encodeURIComponent(id)}:revoke`;
  const key = await apiOf(options, config).admin({ method: 'POST', path }, ApiKey, actor());
  if (options.json) printJson(terminal, key);
  else terminal.out(`key ${key.id} (${key.name}) is revoked`);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'id' },
  { title: 'name', shrinkTo: 10 },
  { title: 'tenant', shrinkTo: 8 },
  { title: 'scopes' },
  { title: 'rate', align: 'right' },
  { title: 'state' },
  { title: 'last used' },
];

export function keyLines(keys: readonly ApiKey[], { colours, width }: Terminal, now = Date.now()): string[] {
  if (keys.length === 0) return ['There is no API key. `remuda keys create` makes one.'];
  const rows = keys.map((key): (string | Cell)[] => [
    key.id,
    key.name,
    key.tenant,
    key.scopes.join(','),
    rateText(key),
    stateOf(key, now, colours),
    key.last_used_at === null ? 'never' : minutes(key.last_used_at),
  ]);
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}

function show(key: ApiKey, { json }: ApiOptions, terminal: Terminal): number {
  if (json) {
    printJson(terminal, key);
    return EXIT.ok;
  }
  const { colours } = terminal;
  const state = stateOf(key, Date.now(), colours);
  const facts: [string, string][] = [
    ['key', `${key.id} (${key.name})`],
    ['tenant', key.tenant],
    ['scopes', key.scopes.join(', ')],
    ['rate', rateText(key)],
    ['state', state.paint?.(state.text) ?? state.text],
    ['secret', `ends in ${key.hint}${key.rotated_at ? `, since ${minutes(key.rotated_at)}` : ''}`],
    ...(key.old_secret_until
      ? [['old secret', `taken until ${minutes(key.old_secret_until)}`] as [string, string]]
      : []),
    ['created', minutes(key.created_at)],
    ['last used', key.last_used_at === null ? 'never' : minutes(key.last_used_at)],
  ];
  for (const [name, value] of facts) terminal.out(`${colours.dim(name.padEnd(10))}  ${value}`);
  return EXIT.ok;
}

function stateOf({ revoked_at, expires_at }: ApiKey, now: number, { green, red }: Colours): Cell {
  if (revoked_at !== null) return { text: `revoked ${minutes(revoked_at)}`, paint: red };
  if (expires_at === null) return { text: 'valid', paint: green };
  const over = Date.parse(expires_at) <= now;
  return { text: `${over ? 'expired' : 'until'} ${minutes(expires_at)}`, paint: over ? red : green };
}

function rateText({ rate_limit }: ApiKey): string {
  return rate_limit === null ? '-' : `${rate_limit.requests_per_second}/s, burst ${rate_limit.burst}`;
}

/** 2026-01-31 12:30Z */
function minutes(iso: string): string {
  return `${new Date(iso).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
