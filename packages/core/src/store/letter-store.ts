/**
 * Dead letters as they lie in Redis: what was given up, with its inputs, beyond the retention of the request itself.
 * They are made by the scripts that end a request (scripts/letters.lua); here they are read and taken away.
 */
import type { ItemError, Route } from '@remuda/schemas';
import type { Keys } from './keys.js';
import { newestFirst, type Place } from './newest-first.js';
import { callScript, type Redis } from './redis.js';
import type { RequestDocument } from './stored-record.js';

export interface StoredLetter {
  requestId: string;
  document: RequestDocument;
  nonce: string;
  /** Items of the request; those that were given up are fewer or as many. */
  items: number;
  attempts: number;
  acceptedAt: number;
  diedAt: number;
  inputBytes: number;
  /** By place of the item, in order. */
  errors: readonly { item: number; error: ItemError }[];
  /** The request that runs it again; null: none does. */
  redrivenAs: string | null;
}

export class LetterStore {
  readonly #redis: Redis;
  readonly #keys: Keys;

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Ids of letters, newest first, strictly before the place. */
  list(before: Place | null, count: number): Promise<Place[]> {
    const sets = this.#keys.allShards().map((shard) => this.#keys.dead(shard));
    return newestFirst(this.#redis, sets, before, count);
  }

  async read(requestId: string): Promise<StoredLetter | null> {
    const fields = await this.#redis.hgetallBuffer(this.#keys.letter(requestId));
    // Without a document its request has not ended yet.
    return fields.doc ? letterOf(requestId, fields) : null;
  }

  /** The input frame of each given-up item, in the order of `errors`; null where it is gone. */
  async inputs({ requestId, nonce, errors }: StoredLetter): Promise<(Buffer | null)[]> {
    const inline = await this.#redis.hgetBuffer(this.#keys.letter(requestId), 'in');
    if (inline) return [inline];
    return Promise.all(
      errors.map(({ item }) => this.#redis.getBuffer(this.#keys.letterPayload(requestId, nonce, item))),
    );
  }

  /** Notes which request runs it again, before that is submitted. False: the letter is gone. */
  noteRedrive(letter: Pick<StoredLetter, 'requestId' | 'nonce'>, as: string): Promise<boolean> {
    return this.#redrive(letter, as);
  }

  /** That request is accepted: takes this letter away, and none that its id has got meanwhile. */
  redriven(letter: Pick<StoredLetter, 'requestId' | 'nonce'>): Promise<boolean> {
    return this.#redrive(letter, '');
  }

  async #redrive(
    { requestId, nonce }: Pick<StoredLetter, 'requestId' | 'nonce'>,
    as: string,
  ): Promise<boolean> {
    const keys = [this.#keys.dead(this.#keys.shardOf(requestId))];
    const args = [this.#keys.tagOf(requestId), requestId, nonce, as];
    return (await callScript(this.#redis, 'redriveLetter', keys, args)) === 1;
  }

  /** Takes letters away with their inputs. Returns how many there were. */
  async drop(requestIds: readonly string[]): Promise<number> {
    const replies = this.#keys
      .byShard(requestIds, (id) => id)
      .map((ids) => {
        const [first] = ids as [string];
        const keys = [this.#keys.dead(this.#keys.shardOf(first))];
        return callScript(this.#redis, 'dropLetters', keys, [this.#keys.tagOf(first), ...ids]);
      });
    return (await Promise.all(replies)).reduce<number>((sum, reply) => sum + (reply as number), 0);
  }

  /** Takes away what is beyond the limits, at most so many of a shard. */
  async trim(now: number, atOnce = 100): Promise<number> {
    const replies = this.#keys.allShards().map((shard) => {
      const tag = this.#keys.dead(shard).slice(0, -':dead'.length);
      return callScript(
        this.#redis,
        'trimLetters',
        [this.#keys.dead(shard)],
        [tag, now, this.#keys.letterLimits, atOnce],
      );
    });
    return (await Promise.all(replies)).reduce<number>((sum, reply) => sum + (reply as number), 0);
  }

  /** How many there are, and the bytes of their inputs. */
  async totals(): Promise<{ letters: number; bytes: number }> {
    const shards = this.#keys.allShards();
    const [counts, bytes] = await Promise.all([
      Promise.all(shards.map((shard) => this.#redis.zcard(this.#keys.dead(shard)))),
      Promise.all(shards.map((shard) => this.#redis.get(this.#keys.deadBytes(shard)))),
    ]);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return { letters: sum(counts), bytes: sum(bytes.map(Number)) };
  }
}

function letterOf(requestId: string, fields: Record<string, Buffer>): StoredLetter {
  const text = (name: string): string => fields[name]?.toString() ?? '';
  const document = JSON.parse(text('doc')) as RequestDocument;
  if (text('route') !== '') document.route = JSON.parse(text('route')) as Route;
  const errors = Object.keys(fields)
    .filter((name) => name.startsWith('e:'))
    .map((name) => ({ item: Number(name.slice(2)), error: JSON.parse(text(name)) as ItemError }))
    .sort((a, b) => a.item - b.item);
  return {
    requestId,
    document,
    nonce: text('nonce'),
    items: Number(text('n')),
    attempts: Number(text('tok')) - Number(text('skip')),
    acceptedAt: Number(text('at')),
    diedAt: Number(text('died')),
    inputBytes: Number(text('b')),
    errors,
    redrivenAs: text('again') || null,
  };
}
