/**
 * The text that names columns, as people write it in --map: one column ("embedding"), or several in brackets
 * ("[a, b]", "[f0..f29]", "[f*]"). A name with odd characters goes in quotes, with a quote inside doubled.
 */
import { nearNames } from '../../repository/near-names.js';

/** What was found, or what is wrong with it, as the two halves of a finding. */
export type Found = { columns: string[] } | { expected: string; received: string };

/** Columns that a range may name: more is a slip of the finger. */
const MOST_IN_RANGE = 100_000;
const RANGE = /^(.*?)(\d+)(\D*)\.\.(.*?)(\d+)(\D*)$/s;
const PLAIN = /^[\p{L}\p{N}_][\p{L}\p{N}_ .:/-]*$/u;

/** The columns that a text names, in the order in which it names them. */
export function columnsNamed(text: string, known: readonly string[]): Found {
  if (known.includes(text)) return { columns: [text] };
  const inside = /^\s*\[(.*)\]\s*$/s.exec(text)?.[1];
  const parts = splitParts(inside ?? text, inside !== undefined);
  if (!Array.isArray(parts)) return parts;
  const columns: string[] = [];
  for (const part of parts) {
    const found = part.quoted ? exactly(part.text, known) : named(part.text, known);
    if (!('columns' in found)) return found;
    columns.push(...found.columns);
  }
  const twice = columns.find((name, place) => columns.indexOf(name) !== place);
  if (columns.length < MOST_IN_RANGE && twice !== undefined) {
    return { expected: 'each column once', received: `"${twice}" a second time in ${text}` };
  }
  return { columns };
}

/** A text that names these columns, as short as it can be. */
export function textOfColumns(columns: readonly string[]): string {
  if (columns.length === 1) return quotedIfOdd(columns[0] as string);
  const parts: string[] = [];
  for (let at = 0; at < columns.length; ) {
    const count = rangeAt(columns, at);
    const first = columns[at] as string;
    parts.push(count > 2 ? `${first}..${columns[at + count - 1]}` : quotedIfOdd(first));
    at += count > 2 ? count : 1;
  }
  return `[${parts.join(', ')}]`;
}

interface Part {
  text: string;
  quoted: boolean;
}

/** Parts between commas; commas in quotes are part of a name. */
function splitParts(text: string, several: boolean): Part[] | Exclude<Found, { columns: string[] }> {
  const parts: Part[] = [];
  let rest = text.trim();
  if (rest === '')
    return { expected: 'the name of a column, or names in brackets: [a, b]', received: 'none' };
  while (rest !== '') {
    const quoted = /^(["'])((?:(?!\1).|\1\1)*)\1\s*(?:,\s*|$)/s.exec(rest);
    const match = quoted ?? ((several ? /^([^,]*)(?:,\s*|$)/s : /^(.*)$/s).exec(rest) as RegExpExecArray);
    if (quoted) {
      const mark = quoted[1] as string;
      parts.push({ text: (quoted[2] as string).replaceAll(mark + mark, mark), quoted: true });
    } else parts.push({ text: (match[1] as string).trim(), quoted: false });
    rest = rest.slice(match[0].length);
  }
  const empty = parts.some((part) => part.text === '');
  return empty ? { expected: 'a name between commas', received: text.trim() } : parts;
}

function named(text: string, known: readonly string[]): Found {
  if (known.includes(text)) return { columns: [text] };
  const range = RANGE.exec(text);
  if (range) return inRange(text, range, known);
  return /[*?]/.test(text) ? matching(text, known) : exactly(text, known);
}

function exactly(name: string, known: readonly string[]): Found {
  const count = known.filter((column) => column === name).length;
  if (count === 1) return { columns: [name] };
  if (count > 1) return { expected: `one column "${name}"`, received: `${count} of that name` };
  return { expected: `a column of the input${didYouMean(name, known)}`, received: `"${name}"` };
}

/** f0..f29, f00..f29, f0_x..f9_x; the beginning may be left out behind the dots. */
function inRange(text: string, range: RegExpExecArray, known: readonly string[]): Found {
  const [, before = '', from = '', after = '', beforeAgain = '', to = '', afterAgain = ''] = range;
  const samePlace = beforeAgain === before || beforeAgain === '';
  if (!samePlace || (afterAgain !== after && after !== '')) {
    return { expected: 'the same name on both sides of "..", as in f0..f29', received: `"${text}"` };
  }
  const first = Number(from);
  const last = Number(to);
  const count = Math.abs(last - first) + 1;
  if (count > MOST_IN_RANGE) {
    return { expected: `at most ${MOST_IN_RANGE} columns in a range`, received: `${count} in "${text}"` };
  }
  const step = last < first ? -1 : 1;
  const width = from.startsWith('0') && from.length > 1 ? from.length : 1;
  const names = Array.from(
    { length: count },
    (_, i) => `${before}${String(first + i * step).padStart(width, '0')}${afterAgain}`,
  );
  const there = new Set(known);
  const missing = names.filter((name) => !there.has(name));
  if (missing.length === 0) return { columns: names };
  const shown = missing.slice(0, 5).map((name) => `"${name}"`);
  const more = missing.length > 5 ? ` and ${missing.length - 5} more` : '';
  const present = names.filter((name) => there.has(name));
  const hint =
    present.length > 0 ? ` (the input has ${shortText(present)})` : didYouMean(missing[0] as string, known);
  return {
    expected: `columns for all ${count} names of ${text}${hint}`,
    received: `no ${shown.join(', ')}${more}`,
  };
}

function shortText(columns: readonly string[]): string {
  const text = textOfColumns(columns);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** In the order of the input. */
function matching(glob: string, known: readonly string[]): Found {
  const source = glob.replace(/[\\^$.*+?()[\]{}|]/g, (mark) =>
    mark === '*' ? '.*' : mark === '?' ? '.' : `\\${mark}`,
  );
  const pattern = new RegExp(`^${source}$`, 'su');
  const columns = known.filter((name) => pattern.test(name));
  if (columns.length > 0) return { columns };
  return { expected: `columns that match ${glob}`, received: `none of ${listOf(known)}` };
}

export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearNames(name, known);
  if (near.length > 0) return ` (did you mean ${near.map((one) => `"${one}"`).join(' or ')}?)`;
  return known.length === 0 ? '' : ` (the input has ${shortText(known)})`;
}

/** At most eight. */
export function listOf(names: readonly string[]): string {
  if (names.length === 0) return 'no columns';
  const shown = names.slice(0, 8).map((name) => `"${name}"`);
  return names.length > 8 ? `${shown.join(', ')} and ${names.length - 8} more` : shown.join(', ');
}

function quotedIfOdd(name: string): string {
  if (PLAIN.test(name) && !name.includes('..') && name.trim() === name) return name;
  return `"${name.replaceAll('"', '""')}"`;
}

/** How many names from a place on count up by one. */
function rangeAt(columns: readonly string[], at: number): number {
  const first = /^([\p{L}_][\p{L}_ -]*)(\d+)$/u.exec(columns[at] as string);
  if (!first) return 1;
  const [, before, digits = ''] = first;
  const width = digits.startsWith('0') && digits.length > 1 ? digits.length : 1;
  let count = 1;
  while (columns[at + count] === `${before}${String(Number(digits) + count).padStart(width, '0')}`) count++;
  return count;
}
