/**
 * Looks for requests that wait while a worker that could run them has nothing to do: waiting is what nobody has taken
 * up and what is held by a process that is gone; a worker can run them when it is ready, is not being hurt, and neither
 * is Redis. The time counts from when all of that has been true.
 */
import type { ChaosFleet } from '../fleet/chaos-fleet.js';
import type { ProcessSlot } from '../fleet/process-slot.js';
import type { Calm } from './calm.js';
import type { Witness } from './witness.js';

const EVERY_MS = 200;
/** Name of Redis among what can be hurt. */
export const STORE = 'store';

export interface IdleFinding {
  seconds: number;
  /** The oldest that waited. */
  id: string;
  worker: string;
}

export class IdleWatch {
  readonly #fleet: ChaosFleet;
  readonly #witness: Witness;
  readonly #calm: Calm;
  readonly #idleSince = new Map<string, number>();
  readonly #goneSince = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  longest: IdleFinding = { seconds: 0, id: '', worker: '' };

  constructor(fleet: ChaosFleet, witness: Witness, calm: Calm) {
    this.#fleet = fleet;
    this.#witness = witness;
    this.#calm = calm;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.look(Date.now()), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  look(now: number): void {
    const { waiting, busy } = this.#sort(now);
    for (const worker of this.#fleet.workers) {
      const free = this.#freeSince(worker, busy, now);
      if (free === null || waiting === null) continue;
      const seconds = (now - Math.max(free, waiting.since)) / 1_000;
      if (seconds > this.longest.seconds) this.longest = { seconds, id: waiting.id, worker: worker.id };
    }
  }

  /** The request that has waited longest, and the workers that hold any. */
  #sort(now: number): { waiting: { id: string; since: number } | null; busy: Set<string> } {
    const alive = new Set(this.#fleet.workers.map(({ id }) => id));
    const busy = new Set<string>();
    let waiting: { id: string; since: number } | null = null;
    for (const id of this.#witness.open) {
      const request = this.#witness.requests.get(id);
      if (!request) continue;
      const held = request.status === 'running' && request.holder !== null;
      if (held && alive.has(request.holder as string)) {
        busy.add(request.holder as string);
        continue;
      }
      const since = held ? this.#noticed(this.#goneSince, request.holder as string, now) : request.seenAt;
      if (waiting === null || since < waiting.since) waiting = { id, since };
    }
    return { waiting, busy };
  }

  #freeSince(worker: ProcessSlot, busy: ReadonlySet<string>, now: number): number | null {
    const calm = this.#calm.since(worker.name);
    const store = this.#calm.since(STORE);
    if (busy.has(worker.id) || !worker.serving || calm === null || store === null) {
      this.#idleSince.delete(worker.id);
      return null;
    }
    return Math.max(this.#noticed(this.#idleSince, worker.id, now), calm, store, worker.readySince);
  }

  #noticed(times: Map<string, number>, name: string, now: number): number {
    const since = times.get(name) ?? now;
    times.set(name, since);
    return since;
  }
}
