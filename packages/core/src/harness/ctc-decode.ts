/** Greedy CTC decoding: the best class of each step, repeats merged, blanks dropped. Pure. */

export interface CtcScores {
  /** [steps, classes], row-major. */
  scores: Float32Array;
  steps: number;
  classes: number;
  blank: number;
  /** True when the scores are logits: each step then counts with the softmax of its best class. */
  logits: boolean;
}

export interface CtcText {
  /** Classes in reading order, blanks and repeats gone. */
  classes: number[];
  /** Mean probability of the classes that were kept; 0 where there is none. */
  score: number;
}

/** Reads one row. A class repeats only with a blank, or another class, between. */
export function decodeGreedy({ scores, steps, classes, blank, logits }: CtcScores): CtcText {
  const kept: number[] = [];
  let sum = 0;
  let previous = blank;
  for (let step = 0, offset = 0; step < steps; step++, offset += classes) {
    const best = argmax(scores, offset, classes);
    if (best !== blank && best !== previous) {
      kept.push(best);
      sum += logits ? softmaxAt(scores, offset, classes, best) : (scores[offset + best] as number);
    }
    previous = best;
  }
  return { classes: kept, score: kept.length === 0 ? 0 : sum / kept.length };
}

function argmax(scores: Float32Array, offset: number, count: number): number {
  let best = 0;
  let top = scores[offset] as number;
  for (let i = 1; i < count; i++) {
    const score = scores[offset + i] as number;
    if (score > top) {
      top = score;
      best = i;
    }
  }
  return best;
}

function softmaxAt(scores: Float32Array, offset: number, count: number, index: number): number {
  const top = scores[offset + index] as number;
  let sum = 0;
  for (let i = 0; i < count; i++) sum += Math.exp((scores[offset + i] as number) - top);
  return 1 / sum;
}
