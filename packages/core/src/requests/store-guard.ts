/**
 * Around everything that an HTTP call asks of Redis: refused at once while Redis is away, refused after 1.8 s when it
 * does not answer, so that nobody waits longer than two seconds to hear so. What Redis says becomes a catalogue code.
 */
import { RemudaError } from '../errors.js';
import type { Metrics } from '../observability/metrics.js';
import type { Redis } from '../store/redis.js';

/** Below the 2 s that are promised, with room for the HTTP around it. */
const ANSWER_MS = 1_800;

export class StoreGuard {
  readonly #redis: Redis;
  readonly #metrics: Pick<Metrics, 'redisErrors'>;

  constructor(redis: Redis, metrics: Pick<Metrics, 'redisErrors'>) {
    this.#redis = redis;
    this.#metrics = metrics;
  }

  get ready(): boolean {
    return this.#redis.status === 'ready';
  }

  /** @throws RemudaError store_unavailable, store_full; what `work` throws as RemudaError stays as it is */
  run<T>(work: () => Promise<T>): Promise<T> {
    if (!this.ready) return Promise.reject(this.#unavailable('away', 'Redis cannot be reached'));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(this.#unavailable('timeout', `Redis did not answer within ${ANSWER_MS / 1000} s`));
      }, ANSWER_MS);
      work().then(
        (answer) => {
          clearTimeout(timer);
          resolve(answer);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(this.explain(error));
        },
      );
    });
  }

  explain(error: unknown): RemudaError {
    if (error instanceof RemudaError) return error;
    const message = error instanceof Error ? error.message : String(error);
    if (message.includes('OOM')) {
      this.#metrics.redisErrors.inc({ role: 'api', reason: 'full' });
      return new RemudaError('store_full', 'Redis has reached its memory limit', {}, { cause: error });
    }
    return this.#unavailable('failed', `Redis failed: ${message}`, error);
  }

  #unavailable(reason: string, message: string, cause?: unknown): RemudaError {
    this.#metrics.redisErrors.inc({ role: 'api', reason });
    return new RemudaError('store_unavailable', message, {}, cause === undefined ? undefined : { cause });
  }
}
