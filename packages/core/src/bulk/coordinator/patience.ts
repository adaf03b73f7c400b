/** How long a job bears trouble that may pass before it is paused: trouble of the model, with no answer in between. */
import type { ItemError } from '@remuda/schemas';
import type { Clock } from '../../lifecycle/clock.js';
import { PauseJob } from './ways-out.js';

/** Time enough for a worker to come back and load the model. */
const PATIENCE_MS = 120_000;

/** Full queues and a Redis that is away are waited for as long as it takes. */
const WAITED_FOR = new Set([
  'over_capacity',
  'tenant_over_quota',
  'rate_limited',
  'store_unavailable',
  'store_full',
  'shutting_down',
]);

export class Patience {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #ms: number;
  #since: number | null = null;

  constructor(clock: Pick<Clock, 'now'>, ms = PATIENCE_MS) {
    this.#clock = clock;
    this.#ms = ms;
  }

  /** @throws PauseJob once it has lasted too long */
  bear(reason: ItemError): void {
    if (WAITED_FOR.has(reason.code)) return;
    this.#since ??= this.#clock.now();
    if (this.#clock.now() - this.#since >= this.#ms) throw new PauseJob(reason);
  }

  /** An answer has come. */
  refresh(): void {
    this.#since = null;
  }
}
