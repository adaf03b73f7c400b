/**
 * Whether the rows of a model may share a run: a batch of N must answer as N single rows do. A right batch axis does not
 * say that: a model may mix its rows (batch normalisation in training mode, a mean over the batch, non-maximum
 * suppression), and then the answer of one request depends on who else sent one.
 */
import type { ModelSignature, Tolerance } from '@remuda/schemas';
import { compareOutputs, differenceText } from '../inference/compare-outputs.js';
import type { LabAnswer, LabItem } from '../profile/lab-messages.js';

/** What the check needs of a model lab. */
export interface BatchLab {
  alone(items: readonly LabItem[]): Promise<LabAnswer[]>;
  together(items: readonly LabItem[]): Promise<LabAnswer[]>;
  largestGroup(items: readonly LabItem[]): Promise<number[]>;
}

export type BatchVerdict =
  /** Its rows may share a run. */
  | { kind: 'same'; rows: number; maxAbsError: number; maxRelError: number }
  /** No input has a batch axis: rows run one by one. */
  | { kind: 'no_batch_axis' }
  /** Its rows must not share a run. */
  | { kind: 'differs'; rows: number; reason: string }
  /** The same input twice, alone, gave two answers: nothing can be compared. */
  | { kind: 'not_deterministic'; reason: string }
  /** Nothing could be compared. */
  | { kind: 'unknown'; reason: string };

const MOST_ROWS = 16;
/** Fewer rows than this are no batch. */
const LEAST_ROWS = 2;

/** @param items of one row or more, as different from each other as may be; those that fail alone are left out */
export async function checkBatching(
  lab: BatchLab,
  signature: Pick<ModelSignature, 'batchable'>,
  items: readonly LabItem[],
  tolerance: Tolerance,
): Promise<BatchVerdict> {
  if (!signature.batchable) return { kind: 'no_batch_axis' };
  const group = (await lab.largestGroup(items)).slice(0, MOST_ROWS).map((index) => items[index] as LabItem);
  const first = await lab.alone(group);
  const usable = group.filter((_, index) => first[index]?.ok);
  const expected = first.filter((answer) => answer.ok);
  if (usable.length < LEAST_ROWS) return { kind: 'unknown', reason: tooFew(group.length, first) };

  const again = firstDifference(expected, await lab.alone(usable), tolerance);
  if (again) return { kind: 'not_deterministic', reason: again.text };

  let [maxAbsError, maxRelError] = [0, 0];
  for (const order of ordersOf(usable.length)) {
    const answers = await lab.together(order.map((index) => usable[index] as LabItem));
    const alone = order.map((index) => expected[index] as LabAnswer);
    const difference = firstDifference(alone, answers, tolerance);
    if (difference) return { kind: 'differs', rows: usable.length, reason: difference.text };
    for (const [at, answer] of answers.entries()) {
      const { maxAbsError: abs, maxRelError: rel } = compared(alone[at] as LabAnswer, answer, tolerance);
      maxAbsError = Math.max(maxAbsError, abs);
      maxRelError = Math.max(maxRelError, rel);
    }
  }
  return { kind: 'same', rows: usable.length, maxAbsError, maxRelError };
}

/** As they are, turned round, and the first half: another place in the batch and other company. */
function ordersOf(count: number): number[][] {
  const all = Array.from({ length: count }, (_, index) => index);
  return [all, [...all].reverse(), all.slice(0, Math.ceil(count / 2))].filter(
    ({ length }) => length >= LEAST_ROWS,
  );
}

function tooFew(count: number, answers: readonly LabAnswer[]): string {
  const failed = answers.find((answer) => !answer.ok);
  if (failed && !failed.ok) return `of ${count} inputs tried, too few could be run: ${failed.error.message}`;
  return `only ${count} of the inputs tried could share a run`;
}

function firstDifference(
  expected: readonly LabAnswer[],
  actual: readonly LabAnswer[],
  tolerance: Tolerance,
): { text: string } | undefined {
  for (const [row, answer] of actual.entries()) {
    if (!answer.ok) return { text: `row ${row} fails in a batch and not alone: ${answer.error.message}` };
    const different = compared(expected[row] as LabAnswer, answer, tolerance).outputs.find(({ ok }) => !ok);
    if (different) return { text: `row ${row}: ${differenceText(different, tolerance)}` };
  }
  return undefined;
}

function compared(expected: LabAnswer, actual: LabAnswer, tolerance: Tolerance) {
  const outputsOf = (answer: LabAnswer) => (answer.ok ? answer.outputs : []);
  return compareOutputs(outputsOf(expected), outputsOf(actual), tolerance);
}
