/** Values of options: text in, the meaning out, or an error that says what would have been right. */
import { InvalidArgumentError } from 'commander';

/** A parser of whole numbers within limits, for commander. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

/** A point in time with its zone, as it is sent: RFC 3339 in UTC. */
export function pointInTime(text: string): string {
  const at = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(at)) return new Date(at).toISOString();
  throw new InvalidArgumentError('Expected a point in time such as 2026-11-30T18:00:00Z.');
}

/** An http(s) address, without a slash at its end. */
export function apiAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('Expected an address such as http://127.0.0.1:8080.');
}

/** Collects a repeated NAME=VALUE. */
export function namedValue(text: string, before: readonly NamedValue[] = []): NamedValue[] {
  const at = text.indexOf('=');
  if (at > 0) return [...before, { name: text.slice(0, at), value: text.slice(at + 1) }];
  throw new InvalidArgumentError('Expected NAME=VALUE or NAME=@FILE.');
}

export interface NamedValue {
  name: string;
  value: string;
}
