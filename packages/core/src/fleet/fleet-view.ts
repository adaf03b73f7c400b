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
const CATCH_UP_MS = 250;

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
  #refreshedAt = Number.NEGATIVE_INFINITY;

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

  /** Device classes on which a live worker that takes new work has the model (that version of it), or is loading it. */
  liveClasses(model: string, version?: string): ReadonlySet<DeviceClass> {
    return this.#classes.get(version === undefined ? model : `${model}@${version}`) ?? NONE;
  }

  /**
   * Looks at Redis now, unless the view is hardly older than that, and for no longer than a moment: for who is about
   * to say that there is no worker, when one may just have come.
   */
  async catchUp(): Promise<void> {
    const { clock = systemClock, onError } = this.#options;
    if (clock.now() - this.#refreshedAt < CATCH_UP_MS) return;
    let cancel = (): void => {};
    const moment = new Promise<void>((resolve) => {
      cancel = clock.after(CATCH_UP_MS, resolve);
    });
    await Promise.race([this.refresh().catch(onError), moment]);
    cancel();
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
    this.#refreshedAt = (this.#options.clock ?? systemClock).now();
    this.#workers = await readFleet(redis, keys);
    this.#classes = classesByModel(this.#workers);
  }
}

/** By model, and by model@version. */
function classesByModel(workers: readonly WorkerHeartbeat[]): Map<string, ReadonlySet<DeviceClass>> {
  const found = new Map<string, Set<DeviceClass>>();
  for (const worker of workers) {
    if (worker.state === 'draining') continue;
    for (const { model, version, state, device } of worker.models) {
      const deviceClass = device.split(':')[0] as DeviceClass;
      if ((state !== 'ready' && state !== 'loading') || !DEVICE_CLASSES.includes(deviceClass)) continue;
      for (const key of [model, `${model}@${version}`]) {
        const classes = found.get(key);
        if (classes) classes.add(deviceClass);
        else found.set(key, new Set([deviceClass]));
      }
    }
  }
  return found;
}
