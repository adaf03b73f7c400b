/** A queue as Redis keeps it, in memory: start tags, scores, the lowest first. For what must hold of any sequence. */
import { FairTags, type Turn } from './fair-tags.js';
import { scoreOf, startOf } from './places.js';

export interface Queued extends Turn {
  /** Order of arrival. */
  at: number;
  score: number;
}

export class SimulatedQueue {
  readonly served: Queued[] = [];
  readonly #tags: FairTags;
  #waiting: Queued[] = [];
  #arrivals = 0;

  constructor(stepRows = 20) {
    this.#tags = new FairTags({ stepRows });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(turn: Turn): Queued {
    const next = this.#waiting[0];
    const start = this.#tags.tag(turn, next && startOf(next.score));
    const at = this.#arrivals++;
    const queued = { ...turn, at, score: scoreOf(start, turn.priority, at) };
    this.#waiting.splice(this.position(queued), 0, queued);
    return queued;
  }

  serve(): Queued | undefined {
    const next = this.#waiting.shift();
    if (next) this.served.push(next);
    return next;
  }

  /** How many go before it. */
  position({ score }: Queued): number {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#waiting[middle] as Queued).score < score) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Numbers that look random and are the same in every run. */
export function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export const rowsOf = (queued: readonly Turn[]): number => queued.reduce((sum, { rows }) => sum + rows, 0);
