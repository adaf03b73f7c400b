/**
 * Rows of cells as aligned lines within a width. Columns get the width of their widest cell; where that is too much,
 * the columns that may shrink give way, the widest first, and their cells end in "…" or go on in the next line.
 */
export interface Column {
  title: string;
  align?: 'left' | 'right';
  /** Narrowest width it may be cut to; absent: never cut. */
  shrinkTo?: number;
  /** What does not fit goes on below rather than being cut. */
  wrap?: boolean;
}

/** `paint` colours the cell after it was measured and padded. */
export interface Cell {
  text: string;
  paint?: (text: string) => string;
}

export interface TableOptions {
  /** Most columns of a line. */
  width: number;
  paintTitle?: (text: string) => string;
}

const GAP = '  ';

export function tableLines(
  columns: readonly Column[],
  rows: readonly (string | Cell)[][],
  { width, paintTitle }: TableOptions,
): string[] {
  const titles = columns.map(({ title }): Cell => ({ text: title, paint: paintTitle }));
  const cells = [titles, ...rows.map((row) => row.map(asCell))];
  const widths = fittedWidths(columns, cells, width);
  return cells.flatMap((row) => linesOf(columns, row, widths));
}

function asCell(cell: string | Cell): Cell {
  const { text, paint } = typeof cell === 'string' ? { text: cell } : cell;
  return { text: text.replace(/[\r\n\t]+/g, ' '), paint };
}

function fittedWidths(columns: readonly Column[], cells: readonly Cell[][], width: number): number[] {
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => displayWidth(row[at]?.text ?? ''))));
  const gaps = GAP.length * (columns.length - 1);
  for (let excess = widths.reduce((sum, w) => sum + w, gaps) - width; excess > 0; excess--) {
    const at = widestThatShrinks(columns, widths);
    if (at === undefined) break;
    widths[at] = (widths[at] as number) - 1;
  }
  return widths;
}

function widestThatShrinks(columns: readonly Column[], widths: readonly number[]): number | undefined {
  let found: number | undefined;
  for (const [at, { shrinkTo }] of columns.entries()) {
    const width = widths[at] as number;
    if (shrinkTo === undefined || width <= shrinkTo) continue;
    if (found === undefined || width > (widths[found] as number)) found = at;
  }
  return found;
}

function linesOf(columns: readonly Column[], row: readonly Cell[], widths: readonly number[]): string[] {
  const parts = columns.map(({ wrap }, at) => {
    const { text = '', paint } = row[at] ?? {};
    const width = widths[at] as number;
    return (wrap ? wrapped(text, width) : [cut(text, width)]).map((part): Cell => ({ text: part, paint }));
  });
  const height = Math.max(...parts.map((cell) => cell.length));
  return Array.from({ length: height }, (_, line) =>
    lineOf(
      columns,
      parts.map((cell) => cell[line] ?? { text: '' }),
      widths,
    ),
  );
}

/** @param row cells that fit their widths */
function lineOf(columns: readonly Column[], row: readonly Cell[], widths: readonly number[]): string {
  const parts = columns.map(({ align }, at) => {
    const { text, paint } = row[at] ?? { text: '' };
    const space = ' '.repeat((widths[at] as number) - displayWidth(text));
    // No spaces behind the last cell of a line, where they would only be in the way of who copies it.
    const after = at === columns.length - 1 ? '' : space;
    const painted = paint && text ? paint(text) : text;
    return align === 'right' ? space + painted : painted + after;
  });
  return parts.join(GAP).replace(/ +$/, '');
}

/** The text itself, or as much of it as fits before an ellipsis. */
export function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let shown = '';
  let used = 1;
  for (const character of text) {
    used += displayWidth(character);
    if (used > width) break;
    shown += character;
  }
  return `${shown}…`;
}

/** In lines of that width, between words; a word that is longer is broken behind a sign, else where the line ends. */
function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ').flatMap((whole) => pieces(whole, width))) {
    const line = lines.at(-1) as string;
    const longer = line === '' ? word : `${line} ${word}`;
    if (displayWidth(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function pieces(word: string, width: number): string[] {
  const found = [''];
  const add = (part: string) => {
    const longer = found.at(-1) + part;
    if (displayWidth(longer) <= width || longer === part) found[found.length - 1] = longer;
    else found.push(part);
  };
  for (const part of word.split(BEHIND_A_SIGN)) {
    if (displayWidth(part) <= width) add(part);
    else for (const character of part) add(character);
  }
  return found;
}

/** Where paths, URLs and name=value may be broken; `http://` stays whole. */
const BEHIND_A_SIGN = /(?<=[^/:][/:=])(?!\/)/;

/** East Asian wide characters and emoji take two columns; combining marks none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ZERO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}\p{Cc}]/u;

export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (character >= ' ' && character <= '~') width++;
    else if (!ZERO_WIDTH.test(character)) width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
