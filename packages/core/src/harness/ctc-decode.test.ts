import { expect, test } from 'vitest';
import { decodeGreedy } from './ctc-decode.js';

/** Scores whose best class at each step is the given one, with probability 0.5. */
function scoresOf(best: number[], classes: number): Float32Array {
  const scores = new Float32Array(best.length * classes);
  best.forEach((index, step) => {
    scores[step * classes + index] = 0.5;
  });
  return scores;
}

const decode = (best: number[]) =>
  decodeGreedy({ scores: scoresOf(best, 4), steps: best.length, classes: 4, blank: 0, logits: false });

test('repeats merge unless a blank stands between', () => {
  expect(decode([1, 1, 0, 1, 2, 2, 0]).classes).toEqual([1, 1, 2]);
});

test('the score is the mean of what was kept; nothing kept is 0', () => {
  expect(decode([3, 0, 2]).score).toBe(0.5);
  expect(decode([0, 0])).toEqual({ classes: [], score: 0 });
});

test('logits count by their softmax', () => {
  const scores = Float32Array.of(0, Math.log(3));
  const { score } = decodeGreedy({ scores, steps: 1, classes: 2, blank: 0, logits: true });
  expect(score).toBeCloseTo(0.75, 6);
});
