/**
 * What a coordinator says of its job in Redis. Changes are written at once and in order, progress at most once a second;
 * a write that is refused means that a newer life has the job, and everything ends (Fenced).
 */
import type { BulkProgress } from '@remuda/schemas';
import type { BulkState } from '../job-record.js';
import type { BulkJobStore } from '../job-store.js';
import { Fenced } from './ways-out.js';

export class JobBook {
  #state: BulkState;
  readonly #store: BulkJobStore;
  readonly #id: string;
  readonly #epoch: number;
  #underWay: Promise<void> = Promise.resolve();
  #writing = 0;

  constructor(store: BulkJobStore, id: string, epoch: number, state: BulkState) {
    this.#store = store;
    this.#id = id;
    this.#epoch = epoch;
    this.#state = state;
  }

  get state(): Readonly<BulkState> {
    return this.#state;
  }

  /** @param closedAt set: nothing more is to be done for the job @throws Fenced */
  write(change: Partial<BulkState>, closedAt?: number): Promise<void> {
    this.#state = { ...this.#state, ...change };
    this.#writing++;
    const work = this.#underWay
      .catch(() => undefined)
      .then(async () => {
        try {
          if (!(await this.#store.write(this.#id, this.#epoch, this.#state, closedAt)))
            throw new Fenced(`life ${this.#epoch} of bulk job ${this.#id} is over`);
        } finally {
          this.#writing--;
        }
      });
    this.#underWay = work;
    return work;
  }

  /** Left out while another write waits: the next one is as good. */
  async progress(progress: BulkProgress): Promise<void> {
    this.#state = { ...this.#state, progress };
    if (this.#writing === 0) await this.write({});
  }
}
