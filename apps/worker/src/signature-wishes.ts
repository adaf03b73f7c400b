/**
 * Signatures of versions that nobody has loaded. An API that gets the first request of a version whose files only
 * workers have asks for its signature; a worker that has the files reads them in a child process, as an API does with
 * its own, and publishes what it found. Only what is asked for is read: hundreds of registered models cost nothing.
 *
 * One at a time here, and by a lock in Redis by one worker of those that hear it.
 */
import type { ModelSource } from '@remuda/core/harness/harness';
import { inspectModel } from '@remuda/core/inference/inspect-model';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';
import { publishSignature, readPublished } from '@remuda/core/requests/published-signatures';
import type { Keys } from '@remuda/core/store/keys';
import type { Redis } from '@remuda/core/store/redis';
import type { ModelSignature } from '@remuda/schemas';

export interface SignatureWishesOptions {
  redis: Redis;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  logger: Logger;
  /** The files of a version, where they are here. */
  sourceOf(model: string, version: string): ModelSource | undefined;
  onError(error: Error): void;
  inspect?(source: ModelSource): Promise<ModelSignature>;
}

/** Longer than the child may take: a worker that dies while it reads leaves the lock. */
const LOCK_MS = 90_000;

export class SignatureWishes implements Service {
  readonly name = 'signature wishes';
  readonly #options: SignatureWishesOptions;
  readonly #waiting = new Set<string>();
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: SignatureWishesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#heard);
    subscriber.subscribe(keys.signatureWanted()).catch(onError);
  }

  /** What is being read is not waited for: it harms nobody. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#options.subscriber.off('message', this.#heard);
  }

  #heard = (channel: string, wish: string): void => {
    if (channel !== this.#options.keys.signatureWanted() || this.#waiting.has(wish)) return;
    const [model, version] = wish.split('/');
    if (!model || !version || !this.#options.sourceOf(model, version)) return;
    this.#waiting.add(wish);
    this.#turn = this.#turn
      .then(() => this.#grant(model, version))
      .catch(this.#options.onError)
      .finally(() => this.#waiting.delete(wish));
  };

  async #grant(model: string, version: string): Promise<void> {
    const { redis, keys } = this.#options;
    const source = this.#options.sourceOf(model, version);
    if (!source || this.#stopped) return;
    const lock = keys.signatureReader(model, version);
    if ((await redis.set(lock, '1', 'PX', LOCK_MS, 'NX')) !== 'OK') return;
    try {
      if (!(await this.#isPublished(source))) await this.#read(source);
    } finally {
      await redis.del(lock);
    }
  }

  async #read(source: ModelSource): Promise<void> {
    const { redis, keys, logger, inspect = inspectModel } = this.#options;
    const { model, version } = source;
    try {
      const signature = await inspect(source);
      // A worker may have loaded it meanwhile, which says more.
      if (await this.#isPublished(source)) return;
      await publishSignature(redis, keys, signature, source.config, 'reader');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ model, version, reason }, 'the signature that was asked for could not be read');
    }
  }

  async #isPublished({ model, version, digest }: ModelSource): Promise<boolean> {
    const { redis, keys } = this.#options;
    const [published] = await readPublished(redis, keys, [{ model, version }]);
    return published?.signature.digest === digest;
  }
}
