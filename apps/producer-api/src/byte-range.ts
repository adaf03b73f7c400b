/** Parts of a file that never changes: Range, If-Range and If-None-Match (RFC 9110), one range at a time. */
import type { IncomingHttpHeaders } from 'node:http';

export interface ByteRange {
  from: number;
  /** Behind the last byte. */
  to: number;
}

/** The field holds a range, and the file has nothing of it. */
export class RangeError416 extends Error {
  constructor(readonly size: number) {
    super(`Range: expected a part of the ${size} bytes of the file`);
  }
}

/**
 * What is asked for; undefined: all of it, also where the field asks for several ranges or for other units, which a
 * server may pass over.
 * @param etag of the file as it is @throws RangeError416
 */
export function wantedRange(headers: IncomingHttpHeaders, size: number, etag: string): ByteRange | undefined {
  if (headers['if-range'] !== undefined && headers['if-range'] !== etag) return undefined;
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.range?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  const range =
    first === ''
      ? { from: Math.max(0, size - Number(last)), to: size }
      : { from: Number(first), to: last === '' ? size : Math.min(size, Number(last) + 1) };
  if (range.from >= size || range.from >= range.to) throw new RangeError416(size);
  return range;
}

/** Whether the caller has the file already. */
export function hasIt({ 'if-none-match': known }: IncomingHttpHeaders, etag: string): boolean {
  if (known === undefined) return false;
  return known.trim() === '*' || known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
