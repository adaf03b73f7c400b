/**
 * Which lane the next batch is for, while both wait: interactive goes first, and bulk is owed a minimum share of the
 * rows. Pure but for the one number it keeps; each worker keeps it for itself, and so the fleet keeps the share.
 *
 * Over any stretch of batches that were closed while both waited, bulk has had at least its share of the rows to within
 * one batch, as long as its batches are full; and of two batches that follow each other at most one is led by bulk, so
 * interactive rows wait for one bulk batch at most.
 */

/** Of the rows, while bulk and interactive both wait. */
export const BULK_SHARE = 0.1;

export const INTERACTIVE = 0;
export const BULK = 1;
export type LaneRank = typeof INTERACTIVE | typeof BULK;

/** By lane. */
export type PerLane<T> = readonly [interactive: T, bulk: T];

export class LaneShare {
  readonly #share: number;
  /** Rows that bulk is behind its share; negative: ahead of it. */
  #owed = 0;
  #ledByBulk = false;

  /** @param share of bulk, 0 (it gets what interactive leaves) to 1 */
  constructor(share: number) {
    this.#share = share;
  }

  /** The lane whose turn it is. @param waits whether anything of the lane waits */
  next([interactive, bulk]: PerLane<boolean>): LaneRank {
    if (!bulk) return INTERACTIVE;
    if (!interactive) return BULK;
    return this.#owed > 0 && !this.#ledByBulk ? BULK : INTERACTIVE;
  }

  /**
   * A batch was closed.
   * @param lead the lane it was closed for; the other fills what is left of it
   * @param contended both lanes waited
   * @param most rows that it could have held
   */
  closed(lead: LaneRank, [interactive, bulk]: PerLane<number>, contended: boolean, most: number): void {
    this.#ledByBulk = contended && lead === BULK;
    if (!contended) {
      this.#owed = 0;
      return;
    }
    const before = this.#owed;
    this.#owed += this.#share * (interactive + bulk) - bulk;
    // Places that interactive left empty cost bulk nothing of what it is owed later.
    if (lead === INTERACTIVE) this.#owed = Math.max(this.#owed, Math.min(before, -(1 - this.#share) * most));
    this.#owed = Math.min(this.#owed, most);
  }
}
