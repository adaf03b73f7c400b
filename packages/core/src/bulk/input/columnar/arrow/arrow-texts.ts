/** Dates, times and decimals as texts: ISO 8601, and decimals with all their digits. */

/** Places behind the second, by the unit: seconds, milliseconds, microseconds, nanoseconds. */
const PLACES = [0, 3, 6, 9] as const;
const DAY_MS = 86_400_000;

/** @param days whether it counts days; else milliseconds */
export function dateText(value: number, days: boolean): string {
  const ms = days ? value * DAY_MS : value;
  return isoText(ms).slice(0, -'T00:00:00.000Z'.length);
}

/** 12:34:56.789 */
export function timeText(value: bigint, unit: number): string {
  const { seconds, fraction } = split(value, unit);
  return new Date(Number(seconds) * 1000).toISOString().slice(11, 19) + fraction;
}

/** 2024-01-02T03:04:05.678, with a Z where it is a moment everywhere. */
export function timestampText(value: bigint, unit: number, zoned: boolean): string {
  const { seconds, fraction } = split(value, unit);
  return isoText(Number(seconds) * 1000).slice(0, -'.000Z'.length) + fraction + (zoned ? 'Z' : '');
}

/** @param bytes little-endian two's complement */
export function decimalText(bytes: Uint8Array, scale: number): string {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i] as number);
  const signed = BigInt.asIntN(bytes.length * 8, value);
  const digits = String(signed < 0n ? -signed : signed);
  const sign = signed < 0n ? '-' : '';
  if (scale <= 0) return sign + digits + '0'.repeat(digits === '0' ? 0 : -scale);
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** Whole seconds, rounded down, and what is left of them: ".5", "" for none. */
function split(value: bigint, unit: number): { seconds: bigint; fraction: string } {
  const places = PLACES[unit] ?? 0;
  const scale = 10n ** BigInt(places);
  const rest = ((value % scale) + scale) % scale;
  const digits = rest === 0n ? '' : `.${String(rest).padStart(places, '0').replace(/0+$/, '')}`;
  return { seconds: (value - rest) / scale, fraction: digits };
}

/** What no calendar of this runtime holds is given as it is. */
function isoText(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return `${ms}ms`.padEnd(24);
  return date.toISOString();
}
