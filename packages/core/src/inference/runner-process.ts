/**
 * The worker's side of a runner: keeps one process alive for a device. When it dies it is replaced and its models are
 * loaded again; batches that were in it are rejected with what is known (RunnerLostError), for run-batch.ts to decide.
 * The first replacement comes at once; a runner that keeps dying before it has run anything is given more and more time.
 */
import { ModelLoadError, ModelNotLoadedError, RemudaError, RUNNER_DIED } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { builtFile } from './built-file.js';
import { Deferred } from './deferred.js';
import type { BatchExecutor } from './run-batch.js';
import {
  type BatchOrder,
  type BatchReport,
  type LoadOptions,
  type LoadReport,
  type RunnerEnd,
  RunnerLife,
  type RunnerLog,
  type ScaleReport,
} from './runner-life.js';
import type { StoreAddress } from './runner-protocol.js';
import { KeyedTurns, TurnQueue } from './turn-queue.js';

export {
  type BatchOrder,
  type BatchReport,
  type LoadOptions,
  type LoadReport,
  type RunnerEnd,
  type RunnerLog,
  RunnerLostError,
  type ScaleReport,
} from './runner-life.js';

export interface RunnerProcessOptions {
  /** cpu, cuda:0, … */
  device: string;
  store: StoreAddress;
  /** Least share of the rows that chunks of bulk jobs get while others wait. Default: BULK_SHARE. */
  bulkShare?: number;
  log: RunnerLog;
  clock?: Clock;
  /** Another entry than the real runner, for tests. */
  entry?: URL;
  /** Of the child; runner-environment.ts makes it of this process's own. Default: this process's own as it is. */
  environment?: NodeJS.ProcessEnv;
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
/** What can be changed in a loaded model without loading it again. */
export interface LiveChanges {
  /** Longest time of one native run, in milliseconds; for runs that begin from now on. */
  timeoutMs?: number;
  /** Most rows of one run; a model that takes one row at a time keeps to that. */
  maxBatchSize?: number;
}

/** A load that died with its process is tried once more: something else may have killed that. */
const LOAD_TRIES = 2;

/** A model that this runner is to hold. `life` settles when a living process has it; it is made anew at each death. */
interface HeldModel {
  /** As it was loaded last, with the changes made since: a restart loads this. */
  source: ModelSource;
  life: Deferred<RunnerLife>;
  /** The process that has it. */
  heldBy: RunnerLife | undefined;
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
  /** Of one model one after the other; those of others do not wait for them. */
  readonly #changes = new KeyedTurns();
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

  /**
   * Loads a version, warms it and runs its golden cases; it is loaded again after every restart, until unload. Where
   * one of the same modelId is loaded, that serves until the new one is ready and then finishes what it has; a
   * failure leaves it as it is.
   * @throws ModelLoadError; RemudaError golden_mismatch
   */
  load(source: ModelSource, options: LoadOptions = {}): Promise<LoadReport> {
    return this.#changes.take(source.modelId, () =>
      this.#loads.take(
        () => 0,
        async () => {
          const { life, report } = await this.#tryLoad(() => source, true, options);
          this.#hold(source, life);
          return report;
        },
      ),
    );
  }

  /** Lets the batches that are in it finish; those that come from now on are refused. */
  unload(modelId: string): Promise<void> {
    return this.#changes.take(modelId, async () => {
      const held = this.#models.get(modelId);
      if (!held) return;
      this.#models.delete(modelId);
      held.life.reject(new ModelNotLoadedError(modelId));
      // A process that is gone has unloaded in its own way.
      await this.#life?.unload(modelId).catch(() => {});
    });
  }

  /** Applies what is safe to change without loading again; a restart keeps it. @throws ModelNotLoadedError */
  async configure(modelId: string, { timeoutMs, maxBatchSize }: LiveChanges): Promise<void> {
    const held = this.#required(modelId);
    const changes = {
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
      ...(maxBatchSize === undefined ? {} : { max_batch_size: maxBatchSize }),
    };
    held.source = withConfig(held.source, changes);
    if (maxBatchSize === undefined) return;
    // Where it is being loaded again, #reload does this once it is.
    await held.heldBy?.configure(modelId, maxBatchSize).catch(() => {});
  }

  /**
   * Changes the number of instances while batches run; a restart keeps it.
   * @throws ModelNotLoadedError; ModelLoadError where a new instance could not be loaded: then the number stays
   */
  scale(modelId: string, instances: number): Promise<ScaleReport> {
    return this.#changes.take(modelId, () =>
      this.#loads.take(
        () => 0,
        async () => {
          await this.#alive.promise;
          const held = this.#required(modelId);
          // In a process that has not loaded it yet, it will be loaded as it is configured by then.
          const report = await held.heldBy?.scale(modelId, instances).catch((error: unknown) => {
            throw asLoadError(error, `${modelId}: the runner died while it loaded another instance`);
          });
          held.source = withConfig(held.source, { instances });
          return report ?? { instances, memoryBytes: 0 };
        },
      ),
    );
  }

  /**
   * Runs a batch on whichever process has the model; waits while one is being replaced.
   * @throws RunnerLostError, RemudaError (the store refused), ModelLoadError (it could not be loaded again)
   */
  async run(order: BatchOrder): Promise<BatchReport> {
    const held = this.#required(order.modelId);
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
    for (const held of this.#models.values()) {
      held.heldBy = undefined;
      if (held.life.settled) held.life = new Deferred();
    }
    this.#uselessDeaths = life.useful ? 0 : this.#uselessDeaths + 1;
    this.#options.onLost?.(end);
    const again = (): void => void this.#begin().catch(() => {});
    this.#cancelRestart = this.#options.clock.after(backoff(this.#uselessDeaths), again);
  }

  #required(modelId: string): HeldModel {
    const held = this.#models.get(modelId);
    if (!held) throw new ModelNotLoadedError(modelId);
    return held;
  }

  /** `life` has the source now. What waits for an older one of that modelId goes to this one. */
  #hold(source: ModelSource, life: RunnerLife): void {
    const held = this.#models.get(source.modelId) ?? {
      source,
      life: new Deferred(),
      heldBy: undefined,
      reloading: false,
      awaited: 0,
    };
    this.#models.set(source.modelId, held);
    held.source = source;
    if (life === this.#life) {
      held.heldBy = life;
      held.life.resolve(life);
    } else if (this.#state === 'ready') this.#reload(held);
  }

  /** Loads a held model into the living process, through as many deaths as that takes. It was verified before. */
  #reload(held: HeldModel): void {
    if (held.reloading) return;
    held.reloading = true;
    const work = async (): Promise<RunnerLife | undefined> => {
      // Replaced meanwhile, by a load of the same modelId; or unloaded.
      if (held.heldBy || this.#models.get(held.source.modelId) !== held) return held.heldBy;
      let source = held.source;
      const { life } = await this.#tryLoad(() => {
        source = held.source;
        return source;
      }, false);
      const { modelId, config } = held.source;
      if (this.#models.get(modelId) !== held) await life.unload(modelId).catch(() => {});
      else if (source !== held.source) await life.configure(modelId, config.max_batch_size).catch(() => {});
      return life;
    };
    // What batches wait for is loaded first: a runner may hold many models.
    this.#loads
      .take(() => held.awaited, work)
      .then(
        (life) => {
          held.reloading = false;
          if (this.#models.get(held.source.modelId) !== held) return;
          if (life && life === this.#life) {
            held.heldBy = life;
            held.life.resolve(life);
          } else if (this.#state === 'ready') this.#reload(held);
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

  async #tryLoad(
    source: () => ModelSource,
    verify: boolean,
    options?: LoadOptions,
  ): Promise<{ life: RunnerLife; report: LoadReport }> {
    let last: unknown;
    for (let tries = 0; tries < LOAD_TRIES; tries++) {
      const life = await this.#alive.promise;
      try {
        return { life, report: await life.load(source(), verify, options) };
      } catch (error) {
        if (error instanceof RemudaError) throw error;
        last = error;
        // Its end is what makes #alive anew.
        await life.ended;
      }
    }
    throw asLoadError(last, `${source().modelId}: the runner died while it loaded the model`);
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

function withConfig(source: ModelSource, changes: Partial<ModelSource['config']>): ModelSource {
  return { ...source, config: { ...source.config, ...changes } };
}

/** An error of ours as it is; what else ended a process as a ModelLoadError. */
function asLoadError(error: unknown, what: string): RemudaError {
  if (error instanceof RemudaError) return error;
  const message = `${what}: ${error instanceof Error ? error.message : String(error)}`;
  return new ModelLoadError(message, { [RUNNER_DIED]: true });
}

/** 0 for the first death in a row, then doubling. */
function backoff(uselessDeaths: number): number {
  if (uselessDeaths <= 1) return 0;
  return Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** (uselessDeaths - 2));
}
