/**
 * JSON.parse whose error always says where. V8 gives a position for some faults and none for others, so the position
 * is found here, by a scan that is run only after JSON.parse has refused the text.
 */
import { refuse } from './violation.js';

const PROTO_KEY = /"__proto__"[ \t\n\r]*:/;

/** @throws InvalidInputError malformed_json, with line and column */
export function parseJson(text: string): unknown {
  // A record would drop this key without a word, and so lose what stands under it.
  if (text.includes('__proto__') && PROTO_KEY.test(text)) {
    refuse([], 'no key "__proto__"', 'one', 'invalid_request');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    return refuse([], 'valid JSON', describeFault(text, error), 'malformed_json');
  }
}

function describeFault(text: string, error: unknown): string {
  const position = jsonFaultPosition(text);
  const before = text.slice(0, position);
  const line = before.split('\n').length;
  const column = position - before.lastIndexOf('\n');
  return `${reasonOf(error)} at position ${position} (line ${line}, column ${column})`;
}

/** V8's reason without its own position and without the piece of the text that it quotes. */
function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason
    .replace(/ in JSON at position .*$/s, '')
    .replace(/, (?:\.\.\.)?".*is not valid JSON$/s, '')
    .replace(/ at position .*$/s, '');
}

/** A number or a word, and white space; sticky, so that each is tried exactly at lastIndex. */
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** What may stand next. `first…` also allows the closing bracket. */
type Wanted = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma' | 'end';

/** Index of the first character that cannot stand where it stands; the length of the text where that ends too soon. */
export function jsonFaultPosition(text: string): number {
  const closers: string[] = [];
  let wanted: Wanted = 'value';
  let at = 0;
  for (;;) {
    at = endOf(SPACE, text, at) as number;
    const character = text[at];
    if (character === undefined) return at;
    if (character === closers.at(-1) && closes(wanted)) {
      closers.pop();
      at++;
      wanted = afterValue(closers);
    } else if (wanted === 'comma' && character === ',') {
      at++;
      wanted = closers.at(-1) === '}' ? 'key' : 'value';
    } else if (wanted === 'colon' && character === ':') {
      at++;
      wanted = 'value';
    } else if ((wanted === 'key' || wanted === 'first key') && character === '"') {
      const string = scanString(text, at);
      if (string.fault) return string.end;
      at = string.end;
      wanted = 'colon';
    } else if (wanted === 'value' || wanted === 'first value') {
      if (character === '{' || character === '[') {
        closers.push(character === '{' ? '}' : ']');
        wanted = character === '{' ? 'first key' : 'first value';
        at++;
        continue;
      }
      const scalar = character === '"' ? scanString(text, at) : scanScalar(text, at);
      if (scalar.fault) return scalar.end;
      at = scalar.end;
      wanted = afterValue(closers);
    } else return at;
  }
}

function closes(wanted: Wanted): boolean {
  return wanted === 'comma' || wanted === 'first key' || wanted === 'first value';
}

function afterValue(closers: readonly string[]): Wanted {
  return closers.length === 0 ? 'end' : 'comma';
}

interface Scanned {
  end: number;
  fault: boolean;
}

function scanScalar(text: string, at: number): Scanned {
  const end = endOf(SCALAR, text, at);
  return { end: end ?? at, fault: end === undefined };
}

/** From the opening quote to behind the closing one, or to the first character that a string cannot hold. */
function scanString(text: string, start: number): Scanned {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return { end: at + 1, fault: false };
    if (code < 0x20) return { end: at, fault: true };
    if (code === 0x5c) {
      const end = endOf(ESCAPE, text, at);
      if (end === undefined) return { end: at, fault: true };
      at = end;
    } else at++;
  }
  return { end: at, fault: true };
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
