/**
 * One model version on one device of this worker: its batcher, what runs its batches, and what is known of its runs
 * (profile, adaptive limit, breaker). Rows of all lanes meet here; a model is never held up by another's queue.
 */

import { AdaptiveLimit } from '@remuda/core/batching/adaptive-limit';
import type { PolicyLimits, Waiting } from '@remuda/core/batching/batch-policy';
import { Batcher, type Unsettled } from '@remuda/core/batching/batcher';
import {
  finishDeadlineError,
  startDeadlineError,
  unreachableFinishError,
} from '@remuda/core/deadlines/deadline-errors';
import type { ModelSource } from '@remuda/core/harness/harness';
import { newBatchId } from '@remuda/core/ids';
import { type BatchExecutor, BatchRunner, errorFrame, type UnitEnd } from '@remuda/core/inference/run-batch';
import type { BatchOrder, BatchReport } from '@remuda/core/inference/runner-process';
import type { BatchUnit } from '@remuda/core/inference/runner-protocol';
import type { SharedGate } from '@remuda/core/inference/shared-gate';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { Breaker, type BreakerState, type ItemVerdict, verdictOf } from '@remuda/core/models/breaker';
import { isShadowId } from '@remuda/core/models/shadow-id';
import type { Logger } from '@remuda/core/observability/logger';
import {
  type BatchFacts,
  type Observers,
  observeClosed,
  observeDone,
} from '@remuda/core/observability/timings';
import { RunProfile } from '@remuda/core/profile/run-profile';
import { ruleFor } from '@remuda/core/retries/error-classes';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { HarnessConfig, ItemError, Lane, LoadedModel, ModelSignature } from '@remuda/schemas';
import type { RateMeter } from './rate-meter.js';

/** What a run is taken for before one was measured. */
const UNMEASURED_SECONDS = 0.02;

/** An item of a request, waiting for its batch. */
export interface ServedItem extends Waiting {
  /** Unix milliseconds by which its request must have ended; 0: none. */
  finishDeadline: number;
  lane: Lane;
  /** Attempts of its job that have failed. */
  failures: number;
  unit: BatchUnit;
}

export interface ServedModelDeps {
  source: ModelSource;
  signature: ModelSignature;
  deviceClass: string;
  workerId: string;
  runner: BatchExecutor;
  /** The runner's: shared by every model in it. */
  gate: SharedGate;
  store: Pick<RequestStore, 'writeOutcomes'>;
  /** Least share of the rows that bulk gets while both lanes wait. Default: BULK_SHARE. */
  bulkShare?: number;
  clock: Clock;
  rates: RateMeter;
  logger: Pick<Logger, 'error'>;
  observers: Observers;
}

/** What can be changed while it serves. */
export interface LiveSettings {
  /** Most rows of a batch; nothing for a model that cannot be batched. */
  maxBatchSize: number;
  maxQueueDelayMs: number;
  timeoutMs: number;
  instances: number;
  /** null: batches are as large as maxBatchSize allows. */
  latencyObjectiveMs: number | null;
}

/** What the heartbeat says of it. */
export type ServedFacts = Pick<
  LoadedModel,
  'instances' | 'last_used_at' | 'backlog_rows' | 'seconds_per_row' | 'run_seconds' | 'breaker'
>;

/**
 * Most native time of a batch that is handed on while all instances are busy, and most runs of it: what arrives behind
 * it waits so much longer. Measured with 110 KB rows, four a run: four runs at a time cost 2.1 ms of CPU a row, one 2.5.
 */
const AHEAD_SECONDS = 0.02;
const MOST_AHEAD_RUNS = 4;
/** What was measured of the length of a run decides for so long that a row is not run at all. */
const BELIEVED_MS = 5_000;

export class ServedModel {
  readonly profile: RunProfile;
  #deps: ServedModelDeps;
  readonly #batcher: Batcher<ServedItem, UnitEnd>;
  readonly #runs: BatchRunner;
  readonly #breaker = new Breaker();
  /** What each unit under way is part of; units keep their identity when a batch is halved. */
  readonly #items = new WeakMap<BatchUnit, ServedItem>();
  #settings: LiveSettings;
  #adaptive: AdaptiveLimit | undefined;
  /** Under way. */
  readonly #chunks = new Set<Promise<readonly UnitEnd[]>>();
  #draining = false;
  /** Runs of a batch that is handed on while all instances are busy. */
  #aheadRuns = 1;
  /** Unix milliseconds of the last native run that was measured. */
  #measuredAt = 0;
  /** Unix milliseconds of the last batch that came back, good or bad. */
  lastProgressAt: number;
  /** Unix milliseconds at which an item was last taken; null: never. */
  lastUsedAt: number | null = null;

  constructor(deps: ServedModelDeps) {
    this.#deps = deps;
    this.lastProgressAt = deps.clock.now();
    this.#runs = new BatchRunner({
      runner: deps.runner,
      gate: deps.gate,
      store: deps.store,
      newBatchId,
      onReport: (order, report) => this.#observe(order, report),
      onBisect: (order, error) => this.#bisected(order, error),
      triesAgain: (unit, error) => this.#triesAgain(unit, error),
      onKilled: () => deps.observers.versions?.killed(deps.source.model, deps.source.version),
    });
    const { config } = deps.source;
    this.#settings = settingsOf(config);
    this.#adaptive = this.#newAdaptive();
    this.profile = new RunProfile({ instances: config.instances, maxRows: this.maxRows });
    this.#batcher = new Batcher({
      limits: this.#limits(),
      clock: deps.clock,
      ...(deps.bulkShare === undefined ? {} : { bulkShare: deps.bulkShare }),
      refillMs: () => this.#refillMs(),
      dispatch: (items) => this.#dispatch(items),
    });
  }

  get source(): ModelSource {
    return this.#deps.source;
  }

  /** What it takes and gives; its bound of rows is that of the settings. */
  get signature(): ModelSignature {
    return { ...this.#deps.signature, max_batch_size: this.maxRows };
  }

  /** As they are now: those of the configuration, until apply() changes them. */
  get settings(): Readonly<LiveSettings> {
    return this.#settings;
  }

  /** Most rows of a batch, as it is set: 1 where the model cannot be batched. */
  get maxRows(): number {
    return this.#deps.signature.batchable ? this.#settings.maxBatchSize : 1;
  }

  /** Most rows of a batch now: less than maxRows where the latency objective asks for it. */
  get batchLimit(): number {
    return this.#adaptive?.limit ?? this.maxRows;
  }

  /** Rows that keep every instance and every batch ahead full, and as many again on their way from the queue. */
  get wantedInFlight(): number {
    const { instances } = this.#settings;
    const batches = this.#aheadRuns > 1 ? instances + 2 : 2 * instances + 2;
    return batches * this.#aheadRuns * this.maxRows;
  }

  /** Items taken from the queue that have no outcome yet. */
  get backlog(): number {
    return this.#batcher.entries;
  }

  /** Rows of these. */
  get backlogRows(): number {
    return this.#batcher.rows;
  }

  get breaker(): BreakerState {
    return this.#breaker.state(this.#deps.clock.now());
  }

  /** While the breaker is open: milliseconds until it lets a batch through. */
  get retryAfterMs(): number {
    return this.#breaker.retryAfterMs(this.#deps.clock.now());
  }

  /** Its part of the heartbeat. */
  facts(): ServedFacts {
    return {
      instances: this.#settings.instances,
      last_used_at: this.lastUsedAt === null ? null : new Date(this.lastUsedAt).toISOString(),
      backlog_rows: this.backlogRows,
      seconds_per_row: this.profile.secondsPerRow,
      run_seconds: this.profile.runSeconds(),
      breaker: this.breaker,
    };
  }

  /** Its settings have changed, or it was loaded again: what waits here goes on with the new. */
  reconfigure(source: ModelSource, signature = this.#deps.signature): void {
    this.#deps = { ...this.#deps, source, signature };
    this.apply(settingsOf(source.config));
  }

  /**
   * Changes how batches are formed, from the next one on; batches under way are not touched. What the runner holds of
   * it (run time-out, rows of a run, number of sessions) is changed there by the caller: before this where it grows,
   * after it where it shrinks.
   */
  apply(changes: Partial<LiveSettings>): void {
    const before = { ...this.#settings, maxRows: this.maxRows };
    this.#settings = { ...this.#settings, ...changes };
    const { latencyObjectiveMs, instances } = this.#settings;
    if (latencyObjectiveMs !== before.latencyObjectiveMs || this.maxRows !== before.maxRows)
      this.#adaptive = this.#newAdaptive();
    this.profile.reconfigure({ instances, maxRows: this.maxRows });
    this.#setAheadRuns();
    this.#updateLimits();
  }

  /**
   * Resolves with what became of the item; 'refused': its runs keep failing here (the breaker is open), so another
   * worker should have it, or this one after retryAfterMs.
   */
  async submit(item: ServedItem): Promise<UnitEnd | Unsettled> {
    if (this.breaker === 'open') return 'refused';
    this.lastUsedAt = this.#deps.clock.now();
    this.#updateLimits();
    const first = await this.#batcher.add(this.#timed(item));
    const end = first === 'expired' ? await this.#expire(item) : first;
    if (typeof end === 'object' && end.kind === 'written' && end.ended && !isShadowId(item.unit.requestId)) {
      const { model } = this.source;
      this.#deps.observers.metrics.requests.inc({ model, lane: item.lane, outcome: end.ended });
    }
    return end;
  }

  /**
   * The same for a chunk of a bulk job. It waits for no batch: it brings full ones of its own, and whatever comes
   * meanwhile goes before each.
   */
  async submitChunk(item: ServedItem): Promise<UnitEnd | Unsettled> {
    if (this.breaker === 'open') return 'refused';
    if (this.#draining) return 'drained';
    const { source, workerId, clock, observers } = this.#deps;
    this.lastUsedAt = clock.now();
    this.#items.set(item.unit, item);
    const run = this.#runs.run({
      ...{ modelId: source.modelId, batchId: newBatchId(), units: [item.unit], workerId },
      chunk: true,
    });
    this.#chunks.add(run);
    const ends = await run.finally(() => this.#chunks.delete(run));
    this.lastProgressAt = clock.now();
    const [end] = ends as [UnitEnd];
    // Of many rows one may be at fault; that is found by who sent them, and says nothing of the model.
    if (item.rows === 1 || end.kind !== 'written' || end.ok) this.#judge(ends);
    if (end.kind === 'written' && end.ended)
      observers.metrics.requests.inc({ model: source.model, lane: item.lane, outcome: end.ended });
    return end;
  }

  /** The same, with the last moment at which its run may begin; as it is where it has no deadline. */
  #timed(item: ServedItem): ServedItem {
    const { deadline, finishDeadline, rows, group } = item;
    if (deadline + finishDeadline === 0) return item;
    const finish = finishDeadline === 0 ? 0 : finishDeadline - this.#expectedMs(rows, group);
    return {
      ...item,
      deadline: deadline === 0 || finish === 0 ? deadline + finish : Math.min(deadline, finish),
      leadMs: this.#expectedMs(this.batchLimit),
    };
  }

  /**
   * What a run of so many rows is expected to take; 0: not known, or not measured for so long that it is time to find
   * out. Were it believed for ever, a model that was slow once would expire all that is in a hurry and never be
   * measured again.
   */
  #expectedMs(rows: number, shape?: string): number {
    if (this.#deps.clock.now() - this.#measuredAt > BELIEVED_MS) return 0;
    return 1000 * (this.profile.runSeconds(Math.min(rows, this.batchLimit), shape) ?? 0);
  }

  /** Lets batches under way finish; what waits comes back as 'drained'. */
  async drain(): Promise<void> {
    this.#draining = true;
    await Promise.all([this.#batcher.drain(), ...this.#chunks].map((one) => one.catch(() => {})));
  }

  /** From now on a lost runner is nobody's fault. */
  stop(): void {
    this.#runs.stop();
  }

  #newAdaptive(): AdaptiveLimit | undefined {
    const { latencyObjectiveMs: objectiveMs } = this.#settings;
    if (objectiveMs === null || this.maxRows === 1) return undefined;
    // Where it had got to is a better beginning than the bound.
    return new AdaptiveLimit({ maxBatchSize: this.maxRows, objectiveMs }, this.#adaptive?.limit);
  }

  #limits(): PolicyLimits {
    const { instances, maxQueueDelayMs: maxDelayMs } = this.#settings;
    const probing = this.breaker !== 'closed';
    return {
      maxRows: this.batchLimit,
      maxDelayMs,
      // A breaker that is half open lets one batch through.
      instances: probing ? 1 : instances,
      // One batch ahead for each instance: its inputs are fetched while another runs. Of several runs, one for all.
      prefetch: probing ? 0 : this.#aheadRuns > 1 ? 1 : instances,
      aheadRows: probing ? this.batchLimit : this.#aheadRuns * this.batchLimit,
    };
  }

  /**
   * A quarter of what a batch takes: what the queue sends in place of one that has ended (a newly come request of another
   * tenant, say) still finds room in the next, and there is time left to fetch the inputs of that.
   */
  #refillMs(): number {
    const seconds = this.profile.runSeconds(this.batchLimit) ?? UNMEASURED_SECONDS;
    return (1000 * seconds * this.#aheadRuns) / 4;
  }

  #updateLimits(): void {
    const now = this.#batcher.limits;
    const wanted = this.#limits();
    const keys = Object.keys(wanted) as (keyof PolicyLimits)[];
    if (keys.some((key) => wanted[key] !== now[key])) this.#batcher.limits = wanted;
  }

  async #dispatch(items: readonly ServedItem[]): Promise<readonly UnitEnd[]> {
    const { source, observers, workerId, clock } = this.#deps;
    const batchId = newBatchId();
    const units = items.map((item) => item.unit);
    for (const item of items) this.#items.set(item.unit, item);
    observeClosed(this.#factsOf(batchId, units), observers);
    this.profile.began();
    const expectedRunMs = this.#expectedMsOf(items);
    const ends = await this.#runs.run({ modelId: source.modelId, batchId, units, workerId, expectedRunMs });
    this.lastProgressAt = clock.now();
    this.profile.ended(this.lastProgressAt, rowsRun(items, ends));
    observers.versions?.ended(source.model, source.version, units, ends);
    this.#judge(ends);
    return ends;
  }

  /** Of a batch, where that decides whether it is run: one of its requests must have ended by some time. */
  #expectedMsOf(items: readonly ServedItem[]): number | undefined {
    if (items.every(({ finishDeadline }) => finishDeadline === 0)) return undefined;
    const rows = items.reduce((sum, item) => sum + item.rows, 0);
    return this.#expectedMs(rows, items[0]?.group) || undefined;
  }

  /** What came of the batch, as the breaker sees it; when that opens, what waits goes to who can run it. */
  #judge(ends: readonly UnitEnd[]): void {
    const { source, observers, deviceClass, logger, clock } = this.#deps;
    const opened = this.#breaker.record(verdictOf(ends.map(itemVerdict)), clock.now());
    if (opened) {
      const { model, version, device } = source;
      const { retryAfterMs: pause_ms } = this;
      observers.metrics.breakerOpened.inc({ model, version, device_class: deviceClass });
      logger.error({ model, version, device, pause_ms }, 'breaker open: its runs keep failing');
      this.#batcher.refuseWaiting();
    }
    this.#updateLimits();
  }

  #factsOf(batchId: string, units: BatchUnit[]): BatchFacts {
    const { source, deviceClass, workerId, clock } = this.#deps;
    return {
      batchId,
      workerId,
      device: source.device,
      model: source.model,
      version: source.version,
      deviceClass,
      units,
      lanes: units.map((unit) => (this.#items.get(unit) as ServedItem).lane),
      closedAt: clock.now(),
    };
  }

  #observe(order: BatchOrder, report: BatchReport): void {
    const { clock, rates, observers } = this.#deps;
    this.lastProgressAt = clock.now();
    const shape = this.#items.get(order.units[0] as BatchUnit)?.group ?? '';
    let changed = false;
    if (report.runs.length > 0) this.#measuredAt = this.lastProgressAt;
    for (const run of report.runs) {
      rates.count(run.rows);
      this.profile.measured(run, shape);
      if (this.#adaptive?.observe(run.rows, run.seconds)) changed = true;
    }
    if (this.#setAheadRuns() || changed) this.#updateLimits();
    observeDone(this.#factsOf(order.batchId, order.units), { ...report, doneAt: clock.now() }, observers);
  }

  /** Short runs are handed on several at a time. Returns whether that has changed. */
  #setAheadRuns(): boolean {
    const seconds = this.profile.runSeconds(this.batchLimit);
    const fitting = seconds === null ? 1 : Math.floor(AHEAD_SECONDS / seconds);
    const runs = this.#adaptive ? 1 : Math.min(MOST_AHEAD_RUNS, Math.max(1, fitting));
    const changed = runs !== this.#aheadRuns;
    this.#aheadRuns = runs;
    return changed;
  }

  #triesAgain(unit: BatchUnit, { code }: ItemError): boolean {
    const item = this.#items.get(unit);
    if (!item || isShadowId(unit.requestId)) return false;
    return item.failures + 1 < ruleFor(code, this.source.config).attempts;
  }

  #bisected(order: BatchOrder, error: ItemError): void {
    const { observers, source } = this.#deps;
    this.lastProgressAt = this.#deps.clock.now();
    observers.metrics.bisections.inc({ model: source.model });
    observers.life.bisected({
      batch_id: order.batchId,
      trace_ids: [...new Set(order.units.map((unit) => unit.traceId))],
      rows: order.units.reduce((rows, unit) => rows + unit.rows, 0),
      code: error.code,
    });
  }

  /** Its deadline passed, or cannot be met, while it waited here: written as its outcome, so that the request ends. */
  async #expire(item: ServedItem): Promise<UnitEnd> {
    const { unit } = item;
    const error = this.#whyExpired(item);
    this.#deps.observers.life.expired({
      trace_id: unit.traceId,
      request_id: unit.requestId,
      at: 'batch_close',
    });
    const [write] = await this.#deps.store.writeOutcomes([
      { unit, kind: 'expired', frame: errorFrame({ error }) },
    ]);
    if (write?.verdict === 'record_missing') return { kind: 'dropped', reason: write.verdict };
    return { kind: 'written', ok: false, code: error.code, ended: write?.ended ?? null };
  }

  #whyExpired({ deadline, finishDeadline, rows, group }: ServedItem): ItemError {
    const now = this.#deps.clock.now();
    if (deadline !== 0 && deadline <= now) return startDeadlineError('while the item waited for its batch');
    if (finishDeadline <= now) return finishDeadlineError();
    return unreachableFinishError(this.#expectedMs(rows, group), finishDeadline - now);
  }
}

/** Rows of a batch that were not left out for their deadlines. */
function rowsRun(items: readonly ServedItem[], ends: readonly UnitEnd[]): number {
  return items.reduce((sum, { rows }, i) => {
    const end = ends[i];
    const left = end?.kind === 'dropped' || (end?.kind === 'written' && end.code === 'deadline_exceeded');
    return left ? sum : sum + rows;
  }, 0);
}

function settingsOf(config: HarnessConfig): LiveSettings {
  return {
    maxBatchSize: config.max_batch_size,
    maxQueueDelayMs: config.max_queue_delay_ms,
    timeoutMs: config.timeout_ms,
    instances: config.instances,
    latencyObjectiveMs: config.latency_objective_ms ?? null,
  };
}

/** An item that was thrown away, or that nobody is known to be guilty of, says nothing. */
function itemVerdict(end: UnitEnd): ItemVerdict {
  if (end.kind === 'written' && end.ok) return { ok: true };
  const code = end.kind === 'written' ? end.code : end.kind === 'unavailable' ? end.error.code : undefined;
  return { ok: false, code };
}
