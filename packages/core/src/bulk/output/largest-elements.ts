/** The largest elements of a vector: of equals the first, NaN behind all numbers. */

/** Place of the largest element in its vector, the first of equals; NaN never is; -1: there is no number. */
export function largest(values: ArrayLike<number | bigint>, from: number, to: number): number {
  let best = -1;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    // False for NaN on either side; the first number is taken whatever it is.
    if (best < 0 ? !Number.isNaN(value) : value > (values[best] as number)) best = i;
  }
  return best < 0 ? -1 : best - from;
}

/**
 * Writes the places of the k largest, largest first, of equals the earlier first, NaN behind all numbers.
 * @returns how many there are
 */
export function kLargest(
  values: ArrayLike<number | bigint>,
  from: number,
  to: number,
  places: Int32Array,
): number {
  let count = 0;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (count === places.length && !goesBefore(value, values[places[count - 1] as number] as number))
      continue;
    let at = count === places.length ? count - 1 : count++;
    while (at > 0 && goesBefore(value, values[places[at - 1] as number] as number)) {
      places[at] = places[at - 1] as number;
      at--;
    }
    places[at] = i;
  }
  return count;
}

function goesBefore(value: number, other: number): boolean {
  return value > other || (Number.isNaN(other) && !Number.isNaN(value));
}
