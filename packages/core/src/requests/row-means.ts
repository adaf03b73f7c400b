/** Mean rows of the last requests for each model that this process has accepted: turns jobs that wait into rows. */

/** Weight of the newest: about the last fifty count. */
const WEIGHT = 0.04;

export class RowMeans {
  readonly #means = new Map<string, number>();

  count(model: string, rows: number): void {
    const mean = this.#means.get(model);
    this.#means.set(model, mean === undefined ? rows : mean + WEIGHT * (rows - mean));
  }

  /** undefined: this process has accepted none. */
  of(model: string): number | undefined {
    return this.#means.get(model);
  }
}
