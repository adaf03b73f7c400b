/**
 * Base64 that refuses what it does not understand. Buffer.from skips unknown characters in silence, so that a damaged
 * text would become a shorter tensor; here it is an error that names the character and its position.
 */
import { refuse } from './violation.js';

const UNKNOWN_CHARACTER = /[^A-Za-z0-9+/_-]/;

/**
 * The bytes of base64 (RFC 4648 section 4, or the URL-safe alphabet of section 5); padding may be left out.
 * @throws InvalidInputError
 */
export function decodeBase64(text: string, path: readonly PropertyKey[]): Buffer {
  const bytes = Buffer.from(text, 'base64');
  const body = text.endsWith('=') ? text.replace(/={1,2}$/, '') : text;
  if (isWhole(text, body, bytes)) return bytes;
  return refuse(path, 'base64', faultOf(text, body));
}

/**
 * Whether nothing was skipped. Each skipped character makes the result shorter than the length promises, which saves
 * looking at every character again; only letters beyond ASCII can be taken for others, and those need more bytes.
 */
function isWhole(text: string, body: string, bytes: Buffer): boolean {
  return (
    body.length % 4 !== 1 &&
    bytes.length === Math.floor((body.length * 3) / 4) &&
    (body.length === text.length || text.length % 4 === 0) &&
    Buffer.byteLength(text) === text.length
  );
}

function faultOf(text: string, body: string): string {
  const unknown = UNKNOWN_CHARACTER.exec(body);
  if (unknown) return `character ${JSON.stringify(unknown[0])} at position ${unknown.index}`;
  const padding = text.length - body.length;
  const padded = padding > 0 ? `, ${padding} of them padding` : '';
  return `${text.length} characters${padded}: a length that base64 cannot have`;
}
