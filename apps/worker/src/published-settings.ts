/**
 * Keeps the published configuration of this worker's versions as it is wanted now: APIs and the steward read load mode,
 * version policy, fallback and limits from there, also of versions that are not loaded. What a worker publishes on
 * loading a version (held-version.ts) is brought up to date here when only settings have changed since.
 */
import { allowedClasses } from '@remuda/core/devices/affinity-rules';
import type { ModelSource } from '@remuda/core/harness/harness';
import { stableJson } from '@remuda/core/repository/version-digest';
import { type Published, publishSignature, readPublished } from '@remuda/core/requests/published-signatures';
import type { Keys } from '@remuda/core/store/keys';
import type { Redis } from '@remuda/core/store/redis';

export interface PublishedSettingsOptions {
  redis: Redis;
  keys: Keys;
  onError(error: Error): void;
}

export class PublishedSettings {
  readonly #options: PublishedSettingsOptions;
  /** Settings that were compared with what is published, by model@version. */
  readonly #told = new Map<string, ModelSource['config']>();
  #turn: Promise<void> = Promise.resolve();

  constructor(options: PublishedSettingsOptions) {
    this.#options = options;
  }

  /** After each turn, with the versions as they are wanted: only those that have changed cost anything. */
  follow(sources: readonly ModelSource[]): void {
    const news = sources.filter(({ modelId, config }) => this.#told.get(modelId) !== config);
    if (news.length === 0) return;
    for (const { modelId, config } of news) this.#told.set(modelId, config);
    this.#turn = this.#turn
      .then(() => this.#compare(news))
      .catch((error: Error) => {
        // Not told, then: the next turn tries again.
        for (const { modelId } of news) this.#told.delete(modelId);
        this.#options.onError(error);
      });
  }

  async #compare(sources: readonly ModelSource[]): Promise<void> {
    const { redis, keys } = this.#options;
    const published = await readPublished(redis, keys, sources);
    for (const [i, source] of sources.entries()) {
      const before = published[i];
      if (before && isOutdated(before, source)) await this.#publish(before, source);
    }
  }

  async #publish({ signature, by, config }: Published, source: ModelSource): Promise<void> {
    const { redis, keys } = this.#options;
    const settings = { ...source.config, instances: config.instances };
    const outlook = {
      max_batch_size: signature.batchable ? settings.max_batch_size : 1,
      affinity: allowedClasses(settings),
    };
    await publishSignature(redis, keys, { ...signature, ...outlook }, settings, by);
  }
}

/** Of the same content; the number of instances is each worker's own. */
function isOutdated({ signature, config }: Published, source: ModelSource): boolean {
  if (signature.digest !== source.digest) return false;
  return stableJson({ ...config, instances: 0 }) !== stableJson({ ...source.config, instances: 0 });
}
