/**
 * The worker's side of a runner: keeps one process alive for a device. When it dies it is replaced and its models are
 * loaded again; batches that were in it are rejected with what is known (RunnerLostError), for run-batch.ts to decide.
 * The first replacement comes at once; a runner that keeps dying before it has run anything is given more and more time.
 */
import { ModelLoadError, ModelNotLoadedError, RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { builtFile } from './built-file.js';
import type { BatchExecutor } from './run-batch.js';
import {
  type BatchOrder,
  type BatchReport,
  type LoadReport,
  type RunnerEnd,
  RunnerLife,
  type RunnerLog,
} from './runner-life.js';
import type { StoreAddress } from './runner-protocol.js';
import { TurnQueue } from './turn-queue.js';

export {
  type BatchOrder,
  type BatchReport,
  type LoadReport,
  type RunnerEnd,
  type RunnerLog,
  RunnerLostError,
} from './runner-life.js';

export interface RunnerProcessOptions {
  /** cpu, cuda:0, … */
  device: string;
  store: StoreAddress;
  log: RunnerLog;
  clock?: Clock;
  /** Another entry than the real runner, for tests. */
  entry?: URL;
  heartbeatMs?: number;
  missedHeartbeats?: number;
  loadTimeoutMs?: number;
  /** How long stop() lets it finish. */
  stopGraceMs?: number;
  /** It died, not by our stop, and is being replaced. */
  onLost?(end: RunnerEnd): void;
  /** A model that was loaded could not be loaded again after a restart. */
  onModelLost?(modelId: string, error: RemudaError): void;
}

export type RunnerState = 'starting' | 'ready' | 'restarting' | 'stopped';

export interface RunnerStatus {
  device: string;
  state: RunnerState;
  pid: number | null;
  restarts: number;
  rssBytes: number | null;
  batchesInFlight: number;
}

const DEFAULTS = {
  heartbeatMs: 1_000,
  missedHeartbeats: 15,
  loadTimeoutMs: 300_000,
  stopGraceMs: 10_000,
};
const BACKOFF_MS = { first: 500, most: 30_000 };
/** A load that died with its process is tried once more: something else may have killed that. */
const LOAD_TRIES = 2;

/** A model that this runner is to hold. `life` settles when a living process has it; it is made anew at each death. */
interface HeldModel {
  source: ModelSource;
  life: Deferred<RunnerLife>;
  reloading: boolean;
  /** Batches that wait for it. */
  awaited: number;
}

export class RunnerProcess implements Service, BatchExecutor {
  readonly name: string;
  readonly #options: RunnerProcessOptions & typeof DEFAULTS & { clock: Clock; entry: URL };
  readonly #models = new Map<string, HeldModel>();
  #life: RunnerLife | undefined;
  #alive = new Deferred<RunnerLife>();
  #state: RunnerState = 'starting';
  #restarts = 0;
  #uselessDeaths = 0;
  /** One load at a time, so that a load that kills the process is known by name. */
  readonly #loads = new TurnQueue();
  #cancelRestart: () => void = () => {};
  #stopping: Promise<void> | undefined;

  constructor(options: RunnerProcessOptions) {
    this.name = `runner ${options.device}`;
    this.#options = {
      clock: systemClock,
      entry: builtFile('./runner-entry.js', import.meta.url),
      ...DEFAULTS,
      ...options,
    };
  }

  /** Resolves when the process serves. @throws Error when it dies before */
  async start(): Promise<void> {
    await this.#begin();
  }

  /** Lets it finish and unload, kills it after the grace. Batches still in it are rejected. */
  stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  status(): RunnerStatus {
    return {
      device: this.#options.device,
      state: this.#state,
      pid: this.#state === 'ready' ? (this.#life?.pid ?? null) : null,
      restarts: this.#restarts,
      rssBytes: this.#life?.rssBytes ?? null,
      batchesInFlight: this.#life?.batchesInFlight ?? 0,
    };
  }

  /** Loads a version; it is loaded again after every restart, until unload. @throws ModelLoadError */
  async load(source: ModelSource): Promise<LoadReport> {
    const { life, report } = await this.#loadInTurn(source);
    const held: HeldModel = { source, life: new Deferred(), reloading: false, awaited: 0 };
    this.#models.set(source.modelId, held);
    if (life === this.#life) held.life.resolve(life);
    else this.#reload(held);
    return report;
  }

  async unload(modelId: string): Promise<void> {
    const held = this.#models.get(modelId);
    if (!held) return;
    this.#models.delete(modelId);
    held.life.reject(new ModelNotLoadedError(modelId));
    // A process that is gone has unloaded in its own way.
    await this.#life?.unload(modelId).catch(() => {});
  }

  /**
   * Runs a batch on whichever process has the model; waits while one is being replaced.
   * @throws RunnerLostError, RemudaError (the store refused), ModelLoadError (it could not be loaded again)
   */
  async run(order: BatchOrder): Promise<BatchReport> {
    const held = this.#models.get(order.modelId);
    if (!held) throw new ModelNotLoadedError(order.modelId);
    held.awaited++;
    const life = await held.life.promise.finally(() => held.awaited--);
    return life.run(order, held.source.config.timeout_ms);
  }

  async #begin(): Promise<void> {
    const life = new RunnerLife({ ...this.#options, onEnd: (ended, end) => this.#lost(ended, end) });
    this.#life = life;
    await life.begin();
    this.#state = 'ready';
    this.#alive.resolve(life);
    for (const held of this.#models.values()) this.#reload(held);
  }

  #lost(life: RunnerLife, end: RunnerEnd): void {
    if (this.#stopping || this.#life !== life) return;
    const neverServed = this.#state === 'starting';
    this.#life = undefined;
    if (neverServed) return;
    this.#restarts++;
    this.#state = 'restarting';
    this.#alive = this.#alive.settled ? new Deferred() : this.#alive;
    for (const held of this.#models.values()) if (held.life.settled) held.life = new Deferred();
    this.#uselessDeaths = life.useful ? 0 : this.#uselessDeaths + 1;
    this.#options.onLost?.(end);
    const again = (): void => void this.#begin().catch(() => {});
    this.#cancelRestart = this.#options.clock.after(backoff(this.#uselessDeaths), again);
  }

  /** Loads a held model into the living process, through as many deaths as that takes. */
  #reload(held: HeldModel): void {
    if (held.reloading) return;
    held.reloading = true;
    // What batches wait for is loaded first: a runner may hold many models.
    this.#loadInTurn(held.source, () => held.awaited).then(
      ({ life }) => {
        held.reloading = false;
        if (life === this.#life) held.life.resolve(life);
        else if (this.#state === 'ready') this.#reload(held);
      },
      (error) => this.#giveUp(held, error),
    );
  }

  #giveUp(held: HeldModel, error: unknown): void {
    const { modelId } = held.source;
    const failure = error instanceof RemudaError ? error : new ModelLoadError(String(error));
    held.life.reject(failure);
    if (this.#stopping || this.#models.get(modelId) !== held) return;
    this.#models.delete(modelId);
    this.#options.onModelLost?.(modelId, failure);
  }

  #loadInTurn(
    source: ModelSource,
    rank: () => number = () => 0,
  ): Promise<{ life: RunnerLife; report: LoadReport }> {
    return this.#loads.take(rank, () => this.#tryLoad(source));
  }

  async #tryLoad(source: ModelSource): Promise<{ life: RunnerLife; report: LoadReport }> {
    let last: unknown;
    for (let tries = 0; tries < LOAD_TRIES; tries++) {
      const life = await this.#alive.promise;
      try {
        return { life, report: await life.load(source) };
      } catch (error) {
        if (error instanceof RemudaError) throw error;
        last = error;
        // Its end is what makes #alive anew.
        await life.ended;
      }
    }
    const reason = last instanceof Error ? last.message : String(last);
    throw new ModelLoadError(`${source.modelId}: the runner died while it loaded the model: ${reason}`);
  }

  async #end(): Promise<void> {
    this.#cancelRestart();
    this.#state = 'stopped';
    const stopped = new RemudaError('shutting_down', 'the runner is stopping');
    if (!this.#alive.settled) this.#alive.reject(stopped);
    for (const held of this.#models.values()) if (!held.life.settled) held.life.reject(stopped);
    await this.#life?.stop(this.#options.stopGraceMs);
  }
}

/** 0 for the first death in a row, then doubling. */
function backoff(uselessDeaths: number): number {
  if (uselessDeaths <= 1) return 0;
  return Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** (uselessDeaths - 2));
}

/** A promise and what settles it. A rejection that nobody awaits is no fault. */
class Deferred<T> {
  readonly promise: Promise<T>;
  settled = false;
  #resolve: (value: T) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.promise.catch(() => {});
  }

  resolve(value: T): void {
    this.settled = true;
    this.#resolve(value);
  }

  reject(error: Error): void {
    this.settled = true;
    this.#reject(error);
  }
}
