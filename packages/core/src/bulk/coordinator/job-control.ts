/**
 * What is wanted of a job, while its coordinator works: heard from the channel at once, and looked up every second, since
 * a message can be lost.
 */
import { Repeat } from '../../fleet/repeat.js';
import type { Clock } from '../../lifecycle/clock.js';
import type { Redis } from '../../store/redis.js';
import type { BulkWish, StoredBulkJob } from '../job-record.js';
import type { BulkJobStore } from '../job-store.js';

const LOOK_EVERY_MS = 1_000;

export interface JobControlOptions {
  job: StoredBulkJob;
  epoch: number;
  store: BulkJobStore;
  /** Of role subscriber. */
  subscriber: Redis;
  clock: Clock;
  onChange(): void;
  /** A newer life has it, or it is gone. */
  onFenced(): void;
  onError(error: Error): void;
}

export class JobControl {
  wanted: BulkWish;
  wantedAt: number;
  priority: number;
  readonly #options: JobControlOptions;
  readonly #repeat: Repeat;
  readonly #channel: string;
  readonly #heard = (channel: string, id: string): void => {
    if (channel === this.#channel && id === this.#options.job.spec.id)
      this.look().catch(this.#options.onError);
  };

  constructor(options: JobControlOptions) {
    const { job, store, clock, onError } = options;
    this.#options = options;
    this.wanted = job.wanted;
    this.wantedAt = job.wantedAt;
    this.priority = job.priority;
    this.#channel = store.keys.bulkChanged();
    this.#repeat = new Repeat({ everyMs: LOOK_EVERY_MS, clock, onError, turn: () => this.look() });
  }

  async start(): Promise<void> {
    const { subscriber } = this.#options;
    subscriber.on('message', this.#heard);
    // It comes back with the connection; until then there is the look of every second.
    subscriber.subscribe(this.#channel).catch(this.#options.onError);
    await this.#repeat.start();
  }

  async stop(): Promise<void> {
    this.#options.subscriber.off('message', this.#heard);
    await this.#repeat.stop();
  }

  async look(): Promise<void> {
    const { store, job, epoch, onChange, onFenced } = this.#options;
    const now = await store.read(job.spec.id);
    if (!now || now.epoch !== epoch) return onFenced();
    const changed =
      now.wanted !== this.wanted || now.wantedAt !== this.wantedAt || now.priority !== this.priority;
    this.wanted = now.wanted;
    this.wantedAt = now.wantedAt;
    this.priority = now.priority;
    if (changed) onChange();
  }
}
