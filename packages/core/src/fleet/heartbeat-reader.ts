/**
 * Heartbeats for who looks often: only those that were written since the last look are fetched and parsed, by the time
 * that stands beside each id in the list of workers. One that says nothing new for longer than a beat is asked for
 * each time, so that a worker that has died is gone when its heartbeat is.
 */
import type { WorkerHeartbeat } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { HEARTBEAT_EVERY_MS } from './heartbeats.js';

/** Most workers that one look sees, as in readFleet. */
const MOST_WORKERS = 1_000;
const SILENT_MS = HEARTBEAT_EVERY_MS * 1.5;

interface Seen {
  beatAt: string;
  /** By the clock of this process: those of two machines may differ. */
  seenAt: number;
  heartbeat: WorkerHeartbeat;
}

export interface HeartbeatReaderOptions {
  redis: Redis;
  keys: Keys;
  clock: Clock;
}

export class HeartbeatReader {
  readonly #options: HeartbeatReaderOptions;
  #seen = new Map<string, Seen>();

  constructor(options: HeartbeatReaderOptions) {
    this.#options = options;
  }

  /** The heartbeats of all live workers, last one first. */
  async read(): Promise<WorkerHeartbeat[]> {
    const { redis, keys, clock } = this.#options;
    const list = await redis.zrevrange(keys.workers(), 0, MOST_WORKERS - 1, 'WITHSCORES');
    const now = clock.now();
    const entries = await Promise.all(
      pairs(list).map(async ([id, beatAt]): Promise<[string, Seen] | undefined> => {
        const before = this.#seen.get(id);
        if (before?.beatAt === beatAt && now - before.seenAt < SILENT_MS) return [id, before];
        const text = await redis.get(keys.worker(id));
        if (text === null) return undefined;
        const seenAt = before?.beatAt === beatAt ? before.seenAt : now;
        return [id, { beatAt, seenAt, heartbeat: JSON.parse(text) as WorkerHeartbeat }];
      }),
    );
    this.#seen = new Map(entries.filter((entry) => entry !== undefined));
    return [...this.#seen.values()].map(({ heartbeat }) => heartbeat);
  }
}

function pairs(list: readonly string[]): [id: string, score: string][] {
  return Array.from({ length: list.length / 2 }, (_, i) => [
    list[2 * i] as string,
    list[2 * i + 1] as string,
  ]);
}
