/**
 * JSON in one form only: keys in order, no white space, numbers as their values. Two texts that mean the same are the
 * same here. Lists of plain values, the bulk of a tensor, are written in one go.
 */

/** Deeper than any body that a schema takes; a body that is all brackets must not use up the stack. */
const MOST_DEPTH = 500;

/** @throws RangeError where the value is nested deeper than 500 levels */
export function canonicalJson(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (depth > MOST_DEPTH) throw new RangeError(`a value that is nested deeper than ${MOST_DEPTH} levels`);
  if (Array.isArray(value)) {
    if (value.every(isPlain)) return JSON.stringify(value);
    return `[${value.map((element) => canonicalJson(element, depth + 1)).join()}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member, depth + 1)}`);
  return `{${texts.join()}}`;
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}
