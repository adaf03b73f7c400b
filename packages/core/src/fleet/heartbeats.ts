/**
 * Heartbeats: each worker says every two seconds that it lives and what it has loaded; who has not said so for ten
 * is not part of the fleet. No worker knows of another.
 *
 * Read by fleet-view.ts, and from there by the route of each request (devices/route.ts).
 */
import type { WorkerHeartbeat } from '@remuda/schemas';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { Repeat } from './repeat.js';

export const HEARTBEAT_EVERY_MS = 2_000;
/** Five missed heartbeats: a pause of the event loop or of Redis must not empty the fleet. */
export const HEARTBEAT_TTL_MS = 10_000;
/** Most workers that one reading looks at. */
const MOST_WORKERS = 1_000;
const WORKERS_PER_STEP = 20;

export interface HeartbeatOptions {
  redis: Redis;
  keys: Keys;
  workerId: string;
  /** What this worker is at this moment. */
  snapshot(): WorkerHeartbeat;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
  ttlMs?: number;
}

/** The worker's side. */
export class HeartbeatWriter implements Service {
  readonly name = 'heartbeats';
  readonly #options: HeartbeatOptions;
  readonly #repeat: Repeat;

  constructor(options: HeartbeatOptions) {
    const { clock = systemClock, everyMs = HEARTBEAT_EVERY_MS, onError } = options;
    this.#options = options;
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.beat() });
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  /** Leaves the fleet at once, so that no request is routed to a worker that has gone. */
  async stop(): Promise<void> {
    await this.#repeat.stop();
    const { redis, keys, workerId, onError } = this.#options;
    // A connection that waits for Redis for ever must not hold up the stop; the time to live does the rest.
    if (redis.status !== 'ready') return;
    await Promise.all([redis.del(keys.worker(workerId)), redis.zrem(keys.workers(), workerId)]).catch(
      onError,
    );
  }

  /** Writes one heartbeat now: when something has changed that the fleet should know soon. */
  async beat(): Promise<void> {
    const { redis, keys, workerId, snapshot, clock = systemClock, ttlMs = HEARTBEAT_TTL_MS } = this.#options;
    if (redis.status !== 'ready') return;
    await Promise.all([
      redis.set(keys.worker(workerId), JSON.stringify(snapshot()), 'PX', ttlMs),
      redis.zadd(keys.workers(), clock.now(), workerId),
    ]);
  }
}

/**
 * The heartbeats of all live workers, by id. Ids of dead ones are dropped from the list on the way. Read in steps with
 * a breath between: the heartbeats of a large fleet take longer to parse than a request should wait.
 */
export async function readFleet(redis: Redis, keys: Keys): Promise<WorkerHeartbeat[]> {
  const ids = await redis.zrevrange(keys.workers(), 0, MOST_WORKERS - 1);
  const workers: WorkerHeartbeat[] = [];
  const dead: string[] = [];
  for (let from = 0; from < ids.length; from += WORKERS_PER_STEP) {
    const step = ids.slice(from, from + WORKERS_PER_STEP);
    const texts = await Promise.all(step.map((id) => redis.get(keys.worker(id))));
    texts.forEach((text, i) => {
      if (text === null) dead.push(step[i] as string);
      else workers.push(JSON.parse(text) as WorkerHeartbeat);
    });
  }
  if (dead.length > 0) await redis.zrem(keys.workers(), ...dead);
  return workers.sort((a, b) => (a.worker_id < b.worker_id ? -1 : 1));
}
