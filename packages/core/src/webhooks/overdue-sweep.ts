/**
 * Puts deliveries back into the queue whose job was lost with a crash or a failover of Redis: those that should have been
 * attempted a minute ago. Most of them are only waiting for their host; then there is a job already, and nothing happens.
 * Bounded work for each turn; every worker that delivers does it, and they share the turns by taking what they look at.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { WebhookQueue } from '../queue/webhook-queue.js';
import type { DeliveryStore } from './delivery-store.js';

const EVERY_MS = 15_000;
const OVERDUE_MS = 60_000;
const AT_ONCE = 200;

export interface OverdueSweepOptions {
  deliveries: DeliveryStore;
  queue: WebhookQueue;
  clock?: Clock;
  onError(error: Error): void;
}

export class OverdueSweep implements Service {
  readonly name = 'webhook-sweep';
  readonly #options: OverdueSweepOptions;
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;
  #underWay: Promise<void> | undefined;
  #stopped = false;

  constructor(options: OverdueSweepOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async start(): Promise<void> {
    this.#rest();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#underWay;
  }

  #rest(): void {
    if (this.#stopped) return;
    this.#cancel = this.#clock.after(EVERY_MS, () => {
      this.#underWay = this.turn()
        .catch(this.#options.onError)
        .then(() => this.#rest());
    });
  }

  async turn(): Promise<void> {
    const { deliveries, queue } = this.#options;
    const now = this.#clock.now();
    const ids = await deliveries.takeOverdue(now - OVERDUE_MS, now, AT_ONCE);
    // The look itself finds out which of them have ended, or are gone.
    await Promise.all(ids.map((id) => queue.add(id)));
  }
}
