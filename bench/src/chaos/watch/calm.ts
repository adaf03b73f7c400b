/** Who is being hurt at this moment, and since when nobody does: what may be expected of whom. */

export class Calm {
  readonly #hurts = new Map<string, number>();
  readonly #calmSince = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** `during` hurts these. */
  async hurting<T>(names: readonly string[], during: () => Promise<T>): Promise<T> {
    for (const name of names) this.#hurts.set(name, (this.#hurts.get(name) ?? 0) + 1);
    try {
      return await during();
    } finally {
      for (const name of names) {
        this.#hurts.set(name, (this.#hurts.get(name) ?? 0) - 1);
        this.#calmSince.set(name, this.#now());
      }
    }
  }

  /** Unix milliseconds; null: it is being hurt. */
  since(name: string): number | null {
    return (this.#hurts.get(name) ?? 0) > 0 ? null : (this.#calmSince.get(name) ?? 0);
  }
}
