/**
 * Waits for requests to end: one subscriber connection for the whole process, whoever waits is woken by the ids that
 * come over it. A message can be missed (pub/sub keeps none), so each waiter first registers and then reads the
 * record, reads it again every few seconds, and after each reconnect of the subscriber.
 */
import { isTerminal } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { RemudaError } from '../errors.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Metrics } from '../observability/metrics.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import type { StoredRecord } from '../store/stored-record.js';

/** A message that was lost costs at most this much. */
const RECHECK_MS = 5_000;
/** Between two looks at a request whose deadline has passed here, and not yet by Redis. */
const LEAST_MS = 20;

export interface WaiterOptions {
  /** A connection of role `subscriber`, of this object's own. */
  subscriber: Redis;
  keys: Keys;
  /** @throws RemudaError request_not_found, store_unavailable */
  read(requestId: string, sight: Sight): Promise<StoredRecord>;
  metrics: Pick<Metrics, 'waitHolders'>;
  clock: Clock;
  onError(error: Error): void;
}

type Wake = () => void;

export class RequestWaiters implements Service {
  readonly name = 'waiters';
  readonly #options: WaiterOptions;
  readonly #waiting = new Map<string, Set<Wake>>();
  #stopped = false;

  constructor(options: WaiterOptions) {
    this.#options = options;
  }

  /** Does not wait for Redis: while it is away waiters look for themselves. */
  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#onMessage);
    // ioredis subscribes again by itself after a reconnect; what ended in between was not heard.
    subscriber.on('ready', this.#wakeAll);
    subscriber.subscribe(keys.ended()).catch(onError);
  }

  /** Everybody who waits gets the record as it is. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const { subscriber } = this.#options;
    subscriber.off('message', this.#onMessage);
    subscriber.off('ready', this.#wakeAll);
    this.#wakeAll();
  }

  /** The record when the request has ended, `ms` have passed or the signal fires: whichever is first. */
  async waitFor(
    requestId: string,
    ms: number,
    signal?: AbortSignal,
    sight: Sight = null,
  ): Promise<StoredRecord> {
    const { clock } = this.#options;
    const until = clock.now() + ms;
    const bell = new Bell(clock, signal);
    this.#register(requestId, bell.ring);
    try {
      let record = await this.#options.read(requestId, sight);
      for (;;) {
        const left = until - clock.now();
        if (isTerminal(record.status) || left <= 0 || signal?.aborted || this.#stopped) return record;
        await bell.wait(Math.min(left, RECHECK_MS, untilDeadline(record, clock.now())));
        record = await this.#readAgain(record, sight, until);
      }
    } finally {
      bell.dispose();
      this.#unregister(requestId, bell.ring);
    }
  }

  /** A Redis that is slow or away for a moment breaks off no wait that has begun; at its end there has to be an answer. */
  async #readAgain(before: StoredRecord, sight: Sight, until: number): Promise<StoredRecord> {
    try {
      return await this.#options.read(before.requestId, sight);
    } catch (error) {
      const away = error instanceof RemudaError && error.code === 'store_unavailable';
      if (!away || this.#options.clock.now() >= until || this.#stopped) throw error;
      return before;
    }
  }

  #register(requestId: string, wake: Wake): void {
    const others = this.#waiting.get(requestId);
    if (others) others.add(wake);
    else this.#waiting.set(requestId, new Set([wake]));
    this.#options.metrics.waitHolders.inc({});
  }

  #unregister(requestId: string, wake: Wake): void {
    const waiting = this.#waiting.get(requestId);
    waiting?.delete(wake);
    if (waiting?.size === 0) this.#waiting.delete(requestId);
    this.#options.metrics.waitHolders.dec({});
  }

  readonly #onMessage = (_channel: string, ids: string): void => {
    if (this.#waiting.size === 0) return;
    for (const id of ids.split(' ')) for (const wake of this.#waiting.get(id) ?? []) wake();
  };

  readonly #wakeAll = (): void => {
    for (const wakes of this.#waiting.values()) for (const wake of wakes) wake();
  };
}

/** Until its next deadline: reading it then ends it, where nobody else has. Not sooner than clocks are known. */
function untilDeadline({ status, deadline, finishDeadline }: StoredRecord, now: number): number {
  const next = [status === 'queued' ? deadline : 0, finishDeadline].filter((at) => at !== 0);
  return next.length === 0 ? RECHECK_MS : Math.max(LEAST_MS, Math.min(...next) - now);
}

/** Rings for one waiter. A ring while nobody listens is kept: the message may come while the record is being read. */
class Bell {
  #rung = false;
  #listener: Wake | undefined;
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;

  constructor(clock: Clock, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#signal = signal;
    signal?.addEventListener('abort', this.ring);
  }

  readonly ring = (): void => {
    this.#rung = true;
    this.#listener?.();
  };

  async wait(ms: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(ms, resolve);
        this.#listener = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#listener = undefined;
    this.#rung = false;
  }

  dispose(): void {
    this.#signal?.removeEventListener('abort', this.ring);
  }
}
