/** Work that is done one piece at a time, the most wanted piece first; what is wanted alike, in order of asking. */
interface Turn {
  rank(): number;
  begin(): void;
}

export class TurnQueue {
  readonly #waiting: Turn[] = [];
  #busy = false;

  /** @param rank asked each time a turn is free: how much this piece is wanted by then */
  async take<T>(rank: () => number, work: () => Promise<T>): Promise<T> {
    if (this.#busy) await new Promise<void>((begin) => this.#waiting.push({ rank, begin }));
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
      this.#next();
    }
  }

  #next(): void {
    let best = 0;
    this.#waiting.forEach((turn, i) => {
      if (turn.rank() > (this.#waiting[best] as Turn).rank()) best = i;
    });
    const [turn] = this.#waiting.splice(best, 1);
    if (!turn) return;
    // Taken at once: whoever asks before the turn has begun must queue.
    this.#busy = true;
    turn.begin();
  }
}

/** A queue for each key, kept while somebody is in it; turns are taken in the order of asking. */
export class KeyedTurns {
  readonly #queues = new Map<string, { queue: TurnQueue; users: number }>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const entry = this.#queues.get(key) ?? { queue: new TurnQueue(), users: 0 };
    this.#queues.set(key, entry);
    entry.users++;
    try {
      return await entry.queue.take(() => 0, work);
    } finally {
      if (--entry.users === 0) this.#queues.delete(key);
    }
  }
}
