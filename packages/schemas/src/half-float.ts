/**
 * IEEE 754 binary16 (FP16) in plain numbers: Node 20 has no Float16Array. Rounds once, straight from the double, to
 * nearest even: going through a 32-bit float first would round twice and miss by one step on some values.
 */

const scratch = new DataView(new ArrayBuffer(8));
/** Adding and taking away 2^52 leaves no room for a fraction: the processor rounds it off, ties to even. */
const ROUNDING = 2 ** 52;
/** Below this the steps between numbers no longer shrink (subnormals). */
const LOWEST_EXPONENT = -14;
/** How many steps one is, for each exponent from the lowest up: a table, since a power costs more than the rest. */
const STEPS_PER_ONE = Float64Array.from({ length: 30 }, (_, i) => 2 ** (10 - (LOWEST_EXPONENT + i)));

/** The bits of the nearest binary16; 65,520 and beyond give infinity. */
export function toHalfBits(value: number): number {
  scratch.setFloat64(0, value);
  const high = scratch.getUint32(0);
  const sign = (high >>> 16) & 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  const magnitude = Math.abs(value);
  if (magnitude >= 65_520) return sign | 0x7c00;
  const above = Math.max(((high >>> 20) & 0x7ff) - 1023 - LOWEST_EXPONENT, 0);
  // Exact: a multiplication by a power of two. 1024 to 2048 steps for a normal number, fewer for a subnormal one;
  // 2048 carries into the exponent by the addition.
  const steps = magnitude * (STEPS_PER_ONE[above] as number) + ROUNDING - ROUNDING;
  return sign | ((above << 10) + steps);
}

/** The number that binary16 bits stand for. */
export function fromHalfBits(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}
