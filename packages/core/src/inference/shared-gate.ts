/**
 * Lets many ordinary batches through at once, or one suspect alone: when a runner dies with only a suspect inside,
 * it is known whose fault it was. Suspects go before ordinary batches, in order.
 */
export class SharedGate {
  #inside = 0;
  #exclusiveInside = false;
  readonly #waitingExclusive: (() => void)[] = [];
  readonly #waitingShared: (() => void)[] = [];

  async shared<T>(work: () => Promise<T>): Promise<T> {
    if (this.#exclusiveInside || this.#waitingExclusive.length > 0) {
      await new Promise<void>((enter) => this.#waitingShared.push(enter));
    } else this.#inside++;
    try {
      return await work();
    } finally {
      this.#inside--;
      this.#admit();
    }
  }

  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    if (this.#exclusiveInside || this.#inside > 0) {
      await new Promise<void>((enter) => this.#waitingExclusive.push(enter));
    } else this.#exclusiveInside = true;
    try {
      return await work();
    } finally {
      this.#exclusiveInside = false;
      this.#admit();
    }
  }

  #admit(): void {
    if (this.#exclusiveInside) return;
    if (this.#inside === 0) {
      const next = this.#waitingExclusive.shift();
      if (next) {
        this.#exclusiveInside = true;
        next();
        return;
      }
    }
    if (this.#waitingExclusive.length > 0) return;
    for (const enter of this.#waitingShared.splice(0)) {
      this.#inside++;
      enter();
    }
  }
}
