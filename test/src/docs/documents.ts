/**
 * The Markdown pages as tests read them. What a test finds in a page is marked by HTML comments that readers do not
 * see: `<!-- table: NAME -->` before a table, `<!-- file: PATH -->` before a block that shows a file. A block whose
 * info string is `sh session` is run (session.ts).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Folders without pages of ours. */
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.remuda', 'coverage']);

/** Paths of all pages, from the root. */
export function pages(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : pages(path);
      return entry.name.endsWith('.md') ? [path] : [];
    })
    .sort();
}

export function readPage(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export interface Fence {
  /** Number of the line that opens it. */
  line: number;
  /** What stands behind the backticks. */
  info: string;
  body: string;
  /** Path of the file that it shows, where a comment before it says so. */
  file: string | undefined;
}

export function fencesOf(page: string): Fence[] {
  const found: Fence[] = [];
  let open: { at: number; info: string; file: string | undefined } | undefined;
  const lines = page.split('\n');
  lines.forEach((line, at) => {
    if (!line.startsWith('```')) return;
    if (open) {
      const body = `${lines.slice(open.at + 1, at).join('\n')}\n`;
      found.push({ line: open.at + 1, info: open.info, body, file: open.file });
      open = undefined;
    } else {
      const before = lines.slice(Math.max(0, at - 2), at).join('\n');
      const file = /<!-- file: (\S+) -->\s*$/.exec(before)?.[1];
      open = { at, info: line.slice(3).trim(), file };
    }
  });
  return found;
}

/** Rows of the table behind `<!-- table: NAME -->`, without its head; each cell as it is written. */
export function tableOf(page: string, name: string): string[][] {
  const from = page.indexOf(`<!-- table: ${name} -->`);
  if (from < 0) throw new Error(`no <!-- table: ${name} --> in the page`);
  const lines = page.slice(from).split('\n').slice(1);
  const start = lines.findIndex((line) => line.startsWith('|'));
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'));
  return lines.slice(start + 2, end < 0 ? undefined : end).map(cellsOf);
}

function cellsOf(row: string): string[] {
  return row
    .replace(/^\||\|\s*$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}
