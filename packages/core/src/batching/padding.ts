/**
 * What padding rules make of a tensor's shape. Pure; the batcher, the compatibility key and the assembly must agree,
 * so the arithmetic stands here alone.
 */
import type { PaddingRule } from '@remuda/schemas';

/** A length rounded up to its bucket. An empty axis stays empty. */
export function bucketOf(length: number, multipleOf: number): number {
  return Math.ceil(length / multipleOf) * multipleOf;
}

/** The shape of an input after padding; the same array where no rule touches it. */
export function paddedShape(
  input: string,
  shape: readonly number[],
  rules: readonly PaddingRule[],
): readonly number[] {
  let padded: number[] | undefined;
  for (const rule of rules) {
    const length = rule.input === input ? shape[rule.axis] : undefined;
    if (length === undefined) continue;
    padded ??= [...shape];
    padded[rule.axis] = bucketOf(length, rule.multiple_of);
  }
  return padded ?? shape;
}

/** True length of a restored output axis. The tiny slack keeps 0.1 × 30 from becoming 4. */
export function restoredLength(inputLength: number, ratio: number): number {
  return Math.ceil(inputLength * ratio - 1e-9);
}
