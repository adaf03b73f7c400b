/**
 * Signatures that are known to the whole fleet: a worker that has loaded a version publishes what it takes and gives,
 * so that an API can check inputs without the model, or even without its file.
 */
import type { HarnessConfig, ModelSignature } from '@remuda/schemas';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

export interface Published {
  signature: ModelSignature;
  config: HarnessConfig;
  /** Only what a worker has loaded takes traffic by default; a reader has merely looked at the file. */
  by: 'worker' | 'reader';
}

/** For the worker, each time a version is loaded: the last one that loaded it is right. */
export async function publishSignature(
  redis: Redis,
  keys: Keys,
  signature: ModelSignature,
  config: HarnessConfig,
  by: Published['by'] = 'worker',
): Promise<void> {
  const published: Published = { signature, config, by };
  await redis.hset(keys.signatures(), fieldOf(signature.model, signature.version), JSON.stringify(published));
}

/** What is published of these versions, in their order; null: nothing. */
export async function readPublished(
  redis: Redis,
  keys: Keys,
  versions: readonly { model: string; version: string }[],
): Promise<(Published | null)[]> {
  if (versions.length === 0) return [];
  const fields = versions.map(({ model, version }) => fieldOf(model, version));
  const texts = await redis.hmget(keys.signatures(), ...fields);
  return texts.map((text) => (text === null ? null : (JSON.parse(text) as Published)));
}

export function fieldOf(model: string, version: string): string {
  return `${model}/${version}`;
}

/** What is published, by model/version. Texts that have not changed are not parsed again. */
export class PublishedSignatures {
  readonly #redis: Redis;
  readonly #keys: Keys;
  #texts: Record<string, string> = {};
  #parsed = new Map<string, Published>();

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  get byField(): ReadonlyMap<string, Published> {
    return this.#parsed;
  }

  async refresh(): Promise<void> {
    const texts = await this.#redis.hgetall(this.#keys.signatures());
    const parsed = new Map<string, Published>();
    for (const [field, text] of Object.entries(texts)) {
      const before = this.#texts[field] === text ? this.#parsed.get(field) : undefined;
      parsed.set(field, before ?? (JSON.parse(text) as Published));
    }
    this.#texts = texts;
    this.#parsed = parsed;
  }

  /** For who is no worker: what a worker has published since the last refresh stays. */
  async publishUnlessNewer(signature: ModelSignature, config: HarnessConfig): Promise<void> {
    const field = fieldOf(signature.model, signature.version);
    const now = await this.#redis.hget(this.#keys.signatures(), field);
    if (now === (this.#texts[field] ?? null)) {
      await publishSignature(this.#redis, this.#keys, signature, config, 'reader');
    }
  }
}
