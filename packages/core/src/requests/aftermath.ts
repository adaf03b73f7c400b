/**
 * What is done after a request has ended: webhooks, answers for requests that waited for the same one, and the like.
 * The script that ends a request notes its id in the same step (store/scripts/ending.lua), so a crash loses nothing;
 * every API and worker process takes ids from there, and an id that is not finished comes again. So each handler must
 * bear to be called twice, by two processes at once even.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';

export interface AftermathHandler {
  /** Resolves when its part is done for good; rejects where it is to be tried again. */
  handle(record: StoredRecord): Promise<void>;
}

export interface AftermathOptions {
  redis: Redis;
  /** A connection of role `subscriber`; shared. */
  subscriber: Redis;
  store: RequestStore;
  handlers: readonly AftermathHandler[];
  onError(error: Error): void;
  clock?: Clock;
  /** Pause between two looks where nothing is told. */
  everyMs?: number;
  /** After which an id that was taken and not finished comes again. */
  againMs?: number;
}

const EVERY_MS = 1_000;
const AGAIN_MS = 15_000;
const TAKEN_AT_ONCE = 100;

export class Aftermath implements Service {
  readonly name = 'aftermath';
  readonly #options: AftermathOptions;
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;
  #underWay: Promise<void> | undefined;
  /** Told of more while it was at work. */
  #more = false;
  #stopped = false;

  constructor(options: AftermathOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async start(): Promise<void> {
    const { subscriber, store, onError } = this.#options;
    this.#stopped = false;
    subscriber.on('message', this.#hear);
    // Not waited for: without Redis there is nothing to hear, and ioredis subscribes when it is back.
    subscriber.subscribe(store.keys.afterChanged()).catch(onError);
    this.#turnSoon();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#options.subscriber.off('message', this.#hear);
    this.#cancel?.();
    await this.#underWay;
  }

  readonly #hear = (channel: string): void => {
    if (channel === this.#options.store.keys.afterChanged()) this.#turnSoon();
  };

  #turnSoon(): void {
    if (this.#stopped) return;
    if (this.#underWay) {
      this.#more = true;
      return;
    }
    this.#cancel?.();
    this.#underWay = this.turn()
      .catch((error: unknown) => this.#options.onError(error as Error))
      .then(() => this.#rest());
  }

  #rest(): void {
    this.#underWay = undefined;
    if (this.#stopped) return;
    if (this.#more) {
      this.#more = false;
      this.#turnSoon();
      return;
    }
    this.#cancel = this.#clock.after(this.#options.everyMs ?? EVERY_MS, () => this.#turnSoon());
  }

  /** Takes what there is until nothing is left. */
  async turn(): Promise<void> {
    const { redis, store, againMs = AGAIN_MS } = this.#options;
    if (redis.status !== 'ready') return;
    for (const shard of store.keys.allShards()) {
      for (let taken = TAKEN_AT_ONCE; taken === TAKEN_AT_ONCE && !this.#stopped; ) {
        const now = this.#clock.now();
        const ids = await store.takeAftermath(shard, now, now + againMs, TAKEN_AT_ONCE);
        await this.#settle(ids);
        taken = ids.length;
      }
    }
  }

  async #settle(ids: readonly string[]): Promise<void> {
    const { store, onError } = this.#options;
    const records = await store.read(ids);
    await Promise.all(ids.map((id, i) => this.#settleOne(id, records[i] ?? null).catch(onError)));
  }

  async #settleOne(id: string, record: StoredRecord | null): Promise<void> {
    const { store, handlers } = this.#options;
    if (record) await Promise.all(handlers.map((handler) => handler.handle(record)));
    await store.finishAftermath(id, record?.nonce ?? null, this.#clock.now());
  }
}
