/**
 * The fleet as this process last saw it, at most two seconds old: what a request is routed by, without a question to
 * Redis. While Redis cannot be reached the last view stays.
 */
import type { DeviceClass, LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { type ClassFacts, type ClassIndex, indexClasses } from './class-index.js';
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

const NOWHERE: ReadonlySet<DeviceClass> = new Set();
const NO_CLASSES: readonly ClassFacts[] = [];

/** What a worker says about one version on one of its devices. */
export interface WorkerCopy {
  worker: WorkerHeartbeat;
  loaded: LoadedModel;
}

const NO_COPIES: readonly WorkerCopy[] = [];

export class FleetView implements Service {
  readonly name = 'fleet view';
  readonly #options: FleetViewOptions;
  readonly #repeat: Repeat;
  #workers: readonly WorkerHeartbeat[] = [];
  #index: ClassIndex = new Map();
  #live = new Map<string, ReadonlySet<DeviceClass>>();
  /** By model; made when it is asked for. */
  #copies: ReadonlyMap<string, readonly WorkerCopy[]> | undefined;
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

  /**
   * Device classes on which a live worker that takes new work has the model (that version of it), is loading it, or
   * loads it when a request asks for it.
   */
  liveClasses(model: string, version?: string): ReadonlySet<DeviceClass> {
    return this.#live.get(keyOf(model, version)) ?? NOWHERE;
  }

  /** What each of those classes offers, and those whose breakers are open. */
  classFacts(model: string, version?: string): readonly ClassFacts[] {
    return this.#index.get(keyOf(model, version)) ?? NO_CLASSES;
  }

  /** How old the view is, in milliseconds; Infinity before the first. */
  get ageMs(): number {
    return (this.#options.clock ?? systemClock).now() - this.#refreshedAt;
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

  /** Models that live workers name, loaded or not. */
  get models(): string[] {
    return [...this.#byModel.keys()];
  }

  /** What each live worker says about a model. */
  loadedBy(model: string): readonly WorkerCopy[] {
    return this.#byModel.get(model) ?? NO_COPIES;
  }

  get #byModel(): ReadonlyMap<string, readonly WorkerCopy[]> {
    this.#copies ??= copiesByModel(this.#workers);
    return this.#copies;
  }

  async refresh(): Promise<void> {
    const { redis, keys } = this.#options;
    if (redis.status !== 'ready') return;
    this.#refreshedAt = (this.#options.clock ?? systemClock).now();
    this.#workers = await readFleet(redis, keys);
    this.#copies = undefined;
    this.#index = indexClasses(this.#workers);
    this.#live = new Map([...this.#index].map(([key, classes]) => [key, liveIn(classes)]));
  }
}

function keyOf(model: string, version: string | undefined): string {
  return version === undefined ? model : `${model}@${version}`;
}

function liveIn(classes: readonly ClassFacts[]): ReadonlySet<DeviceClass> {
  return new Set(
    classes
      .filter(({ ready, coming, broken }) => ready + coming + broken > 0)
      .map(({ deviceClass }) => deviceClass),
  );
}

function copiesByModel(workers: readonly WorkerHeartbeat[]): Map<string, WorkerCopy[]> {
  const found = new Map<string, WorkerCopy[]>();
  for (const worker of workers) {
    for (const loaded of worker.models) {
      const copies = found.get(loaded.model);
      if (copies) copies.push({ worker, loaded });
      else found.set(loaded.model, [{ worker, loaded }]);
    }
  }
  return found;
}
