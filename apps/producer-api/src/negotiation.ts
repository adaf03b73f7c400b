/** What the caller wants of the answer: how long to hold it (Prefer, RFC 7240) and in which form (Accept). */
import { RemudaError } from '@remuda/core/errors';
import { LIMITS, refuse } from '@remuda/schemas';

export interface Preferences {
  /** 0: answer at once. */
  waitMs: number;
  /** Value of Preference-Applied; undefined: none was. */
  applied: string | undefined;
}

const NONE: Preferences = { waitMs: 0, applied: undefined };

/**
 * `wait=s` is honoured up to the limit, and Preference-Applied says how long; respond-async is what happens without.
 * Preferences of other names are none of ours and are ignored, as the RFC has it.
 * @throws InvalidInputError when `wait` is no number of seconds
 */
export function readPreferences(prefer: string | string[] | undefined): Preferences {
  if (prefer === undefined) return NONE;
  const wanted = String(prefer)
    .split(',')
    .map((preference) => (preference.split(';')[0] as string).trim());
  for (const preference of wanted) {
    const match = /^wait(?:\s*=\s*"?([^"]*)"?)?$/i.exec(preference);
    if (!match) continue;
    const text = match[1] ?? '';
    if (!/^\d{1,9}$/.test(text)) refuse(['Prefer'], 'wait=<whole seconds>', preference, 'invalid_request');
    const seconds = Math.min(Number(text), LIMITS.waitSeconds);
    return { waitMs: seconds * 1000, applied: `wait=${seconds}` };
  }
  return wanted.includes('respond-async') ? { waitMs: 0, applied: 'respond-async' } : NONE;
}

export type ResultFormat = 'json' | 'binary';

const FORMATS: readonly (readonly [type: string, format: ResultFormat])[] = [
  ['application/json', 'json'],
  ['application/octet-stream', 'binary'],
];

/** The form of a result; records and errors are always JSON. @throws RemudaError not_acceptable */
export function resultFormat(accept: string | undefined): ResultFormat {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return 'json';
  let best: { format: ResultFormat; quality: number } | undefined;
  for (const [type, format] of FORMATS) {
    const quality = qualityOf(type, accept);
    if (quality > (best?.quality ?? 0)) best = { format, quality };
  }
  if (best) return best.format;
  throw new RemudaError(
    'not_acceptable',
    `expected Accept to name application/json or application/octet-stream, received ${accept}`,
  );
}

/** The quality that the most exact range gives the type; 0 where none takes it. */
function qualityOf(type: string, accept: string): number {
  let found = { exactness: -1, quality: 0 };
  for (const part of accept.split(',')) {
    const [range, ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const exactness = ['*/*', 'application/*', type].indexOf(range as string);
    if (exactness <= found.exactness) continue;
    const q = parameters.find((parameter) => parameter.startsWith('q='));
    found = { exactness, quality: q === undefined ? 1 : Number(q.slice(2)) || 0 };
  }
  return found.quality;
}
