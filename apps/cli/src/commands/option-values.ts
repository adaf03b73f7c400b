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

/** 1 to 255 printable ASCII characters. */
export function printable(text: string): string {
  if (/^[\x20-\x7e]{1,255}$/.test(text)) return text;
  throw new InvalidArgumentError('Expected 1 to 255 printable ASCII characters.');
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

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('Expected a number above 0.');
}

const UNIT_S = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** 90, 10m, 12h, 1d as seconds. */
export function secondsOf(text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * UNIT_S[unit as keyof typeof UNIT_S];
  throw new InvalidArgumentError('Expected a time such as 90s, 10m, 12h or 7d.');
}

/** A point in time, or a length from now on, as ISO 8601. */
export function momentOf(text: string): string {
  if (/^\d{1,9}[smhd]$/.test(text)) return new Date(Date.now() + secondsOf(text) * 1_000).toISOString();
  if (/^\d{4}-\d\d-\d\d(T.*)?$/.test(text) && !Number.isNaN(Date.parse(text)))
    return new Date(text).toISOString();
  throw new InvalidArgumentError(
    'Expected a time such as 2030-01-31T00:00:00Z, or 90d for 90 days from now.',
  );
}
