/**
 * The fleet as this process last saw it, at most two seconds old: what a request is routed by, without a question to
 * Redis. While Redis cannot be reached the last view stays.
 */
import { DEVICE_CLASSES, type DeviceClass, type LoadedModel, type WorkerHeartbeat } from '@remuda/schemas';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { readFleet } from './heartbeats.js';
import { Repeat } from './repeat.js';

const REFRESH_EVERY_MS = 1_500;

export interface FleetViewOptions {
  redis: Redis;
  keys: Keys;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
}

const NONE: ReadonlySet<DeviceClass> = new Set();

export class FleetView implements Service {
  readonly name = 'fleet view';
  readonly #options: FleetViewOptions;
  readonly #repeat: Repeat;
  #workers: readonly WorkerHeartbeat[] = [];
  #classes = new Map<string, ReadonlySet<DeviceClass>>();

  constructor(options: FleetViewOptions) {
    const { clock = systemClock, everyMs = REFRESH_EVERY_MS, onError } = options;
    this.#options = options;
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.refresh() });
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  stop(): Promise<void> {
    return this.#repeat.stop();
  }

  get workers(): readonly WorkerHeartbeat[] {
    return this.#workers;
  }

  /** Device classes on which a live worker that takes new work has the model, or is loading it. */
  liveClasses(model: string): ReadonlySet<DeviceClass> {
    return this.#classes.get(model) ?? NONE;
  }

  /** What each live worker says about a model. */
  loadedBy(model: string): { worker: WorkerHeartbeat; loaded: LoadedModel }[] {
    return this.#workers.flatMap((worker) =>
      worker.models.filter((loaded) => loaded.model === model).map((loaded) => ({ worker, loaded })),
    );
  }

  async refresh(): Promise<void> {
    const { redis, keys } = this.#options;
    if (redis.status !== 'ready') return;
    this.#workers = await readFleet(redis, keys);
    this.#classes = classesByModel(this.#workers);
  }
}

function classesByModel(workers: readonly WorkerHeartbeat[]): Map<string, ReadonlySet<DeviceClass>> {
  const found = new Map<string, Set<DeviceClass>>();
  for (const worker of workers) {
    if (worker.state === 'draining') continue;
    for (const { model, state, device } of worker.models) {
      const deviceClass = device.split(':')[0] as DeviceClass;
      if ((state !== 'ready' && state !== 'loading') || !DEVICE_CLASSES.includes(deviceClass)) continue;
      const classes = found.get(model);
      if (classes) classes.add(deviceClass);
      else found.set(model, new Set([deviceClass]));
    }
  }
  return found;
}
