/** Random numbers that a seed repeats: the same seed gives the same sequence, on every machine. */

export class Random {
  #state: number;

  /** @param seed a whole number; only its lowest 32 bits count */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  /** @param items not empty */
  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)] as T;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const deck = [...items];
    for (let last = deck.length - 1; last > 0; last--) {
      const at = this.whole(0, last);
      [deck[last], deck[at]] = [deck[at] as T, deck[last] as T];
    }
    return deck;
  }
}
