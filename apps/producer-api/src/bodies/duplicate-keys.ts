/**
 * Finds a key that stands twice in one object of a JSON text. JSON.parse keeps the last one without a word, so a
 * doubled input would be answered for data that its sender did not mean. Jumps from quote to quote and brace to brace:
 * long arrays of numbers cost next to nothing. Where a key is doubled a second, slower pass finds its place.
 */

/** Path of the first doubled key, or undefined. @param text JSON that JSON.parse has taken */
export function findDuplicateKey(text: string): (string | number)[] | undefined {
  const end = endOfDuplicate(text);
  return end === undefined ? undefined : pathAt(text, end);
}

/** Index of the closing quote of the first doubled key. */
function endOfDuplicate(text: string): number | undefined {
  const open: Set<string>[] = [];
  const quote = new Finder(text, '"');
  const brace = new Finder(text, '{');
  const end = new Finder(text, '}');
  for (let at = 0; ; ) {
    const [q, b, e] = [quote.from(at), brace.from(at), end.from(at)];
    if (q < b && q < e) {
      const close = endOfString(text, q);
      if (isKey(text, close) && isDoubled(open.at(-1), keyText(text.slice(q + 1, close)))) return close;
      at = close + 1;
    } else if (b < e) {
      open.push(new Set());
      at = b + 1;
    } else if (e < Number.POSITIVE_INFINITY) {
      open.pop();
      at = e + 1;
    } else return undefined;
  }
}

function isDoubled(keys: Set<string> | undefined, key: string): boolean {
  if (keys?.has(key)) return true;
  keys?.add(key);
  return false;
}

/** Where a character stands next; looks again only once that place has been passed. */
class Finder {
  #next = -1;

  constructor(
    private readonly text: string,
    private readonly character: string,
  ) {}

  from(at: number): number {
    if (this.#next >= at) return this.#next;
    const found = this.text.indexOf(this.character, at);
    this.#next = found < 0 ? Number.POSITIVE_INFINITY : found;
    return this.#next;
  }
}

/** Keys and positions from the outside to the key whose closing quote is at `end`. */
function pathAt(text: string, end: number): (string | number)[] {
  const open: (string | number)[] = [];
  for (let i = 0; i <= end; i++) {
    const character = text[i];
    if (character === '"') {
      const close = endOfString(text, i);
      if (isKey(text, close)) open[open.length - 1] = keyText(text.slice(i + 1, close));
      i = close;
    } else if (character === '{') open.push('');
    else if (character === '[') open.push(0);
    else if (character === '}' || character === ']') open.pop();
    else if (character === ',') {
      const last = open.at(-1);
      if (typeof last === 'number') open[open.length - 1] = last + 1;
    }
  }
  return open;
}

/** Index of the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return end;
  }
}

/** In valid JSON a colon follows keys and nothing else. */
function isKey(text: string, closingQuote: number): boolean {
  let at = closingQuote + 1;
  while (text.charCodeAt(at) <= 32) at++;
  return text[at] === ':';
}

/** Two spellings of one key are one key. */
function keyText(raw: string): string {
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}
