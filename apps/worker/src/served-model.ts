/**
 * One model version on one device of this worker: its batcher and what runs its batches. Rows of all lanes meet here;
 * a model is never held up by another's queue.
 */

import type { PolicyLimits, Waiting } from '@remuda/core/batching/batch-policy';
import { Batcher, type Unsettled } from '@remuda/core/batching/batcher';
import { itemError } from '@remuda/core/errors';
import type { ModelSource } from '@remuda/core/harness/harness';
import { newBatchId } from '@remuda/core/ids';
import { type BatchExecutor, BatchRunner, errorFrame, type UnitEnd } from '@remuda/core/inference/run-batch';
import type { BatchOrder, BatchReport } from '@remuda/core/inference/runner-process';
import type { BatchUnit } from '@remuda/core/inference/runner-protocol';
import type { SharedGate } from '@remuda/core/inference/shared-gate';
import type { Clock } from '@remuda/core/lifecycle/clock';
import {
  type BatchFacts,
  type Observers,
  observeClosed,
  observeDone,
} from '@remuda/core/observability/timings';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { ItemError, Lane, ModelSignature } from '@remuda/schemas';
import type { RateMeter } from './rate-meter.js';

/** An item of a request, waiting for its batch. */
export interface ServedItem extends Waiting {
  lane: Lane;
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
  store: RequestStore;
  clock: Clock;
  rates: RateMeter;
  observers: Observers;
}

export class ServedModel {
  #deps: ServedModelDeps;
  readonly #limits: PolicyLimits;
  readonly #batcher: Batcher<ServedItem, UnitEnd>;
  readonly #runs: BatchRunner;
  /** Unix milliseconds of the last batch that came back, good or bad. */
  lastProgressAt: number;

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
    });
    this.#limits = this.#limitsNow();
    this.#batcher = new Batcher({
      limits: this.#limits,
      clock: deps.clock,
      dispatch: (items) => this.#dispatch(items),
    });
  }

  /** Its settings have changed, or it was loaded again: what waits here goes on with the new. */
  reconfigure(source: ModelSource, signature = this.#deps.signature): void {
    this.#deps = { ...this.#deps, source, signature };
    Object.assign(this.#limits, this.#limitsNow());
  }

  #limitsNow(): PolicyLimits {
    const { max_queue_delay_ms: maxDelayMs, instances } = this.#deps.source.config;
    // One batch ahead for each instance: its inputs are fetched while another runs.
    return { maxRows: this.maxRows, maxDelayMs, instances, prefetch: instances };
  }

  get source(): ModelSource {
    return this.#deps.source;
  }

  /** Most rows of a batch: 1 where the model cannot be batched. */
  get maxRows(): number {
    return this.#deps.signature.batchable ? this.#deps.source.config.max_batch_size : 1;
  }

  /** Rows that keep every instance and every batch ahead full, and as many again on their way from the queue. */
  get wantedInFlight(): number {
    return (2 * this.#deps.source.config.instances + 2) * this.maxRows;
  }

  /** Items taken from the queue that have no outcome yet. */
  get backlog(): number {
    return this.#batcher.waiting + this.#batcher.inFlight;
  }

  /** Resolves with what became of the item. */
  async submit(item: ServedItem): Promise<UnitEnd | Unsettled> {
    const first = await this.#batcher.add(item);
    const end = first === 'expired' ? await this.#expire(item) : first;
    if (typeof end === 'object' && end.kind === 'written' && end.ended) {
      const { model } = this.source;
      this.#deps.observers.metrics.requests.inc({ model, lane: item.lane, outcome: end.ended });
    }
    return end;
  }

  /** Lets batches under way finish; what waits comes back as 'drained'. */
  drain(): Promise<void> {
    return this.#batcher.drain();
  }

  /** From now on a lost runner is nobody's fault. */
  stop(): void {
    this.#runs.stop();
  }

  async #dispatch(items: readonly ServedItem[]): Promise<readonly UnitEnd[]> {
    const batchId = newBatchId();
    const units = items.map((item) => item.unit);
    observeClosed(this.#factsOf(batchId, units, (items[0] as ServedItem).lane), this.#deps.observers);
    const ends = await this.#runs.run({
      modelId: this.source.modelId,
      batchId,
      units,
      workerId: this.#deps.workerId,
    });
    this.lastProgressAt = this.#deps.clock.now();
    return ends;
  }

  #factsOf(batchId: string, units: BatchUnit[], lane: Lane): BatchFacts {
    const { source, deviceClass, workerId, clock } = this.#deps;
    return {
      batchId,
      workerId,
      device: source.device,
      model: source.model,
      version: source.version,
      deviceClass,
      lane,
      units,
      closedAt: clock.now(),
    };
  }

  #observe(order: BatchOrder, report: BatchReport): void {
    const { clock, rates, observers } = this.#deps;
    this.lastProgressAt = clock.now();
    for (const run of report.runs) rates.count(run.rows);
    // A batch may mix lanes; it is counted with the first that would have gone.
    const facts = this.#factsOf(order.batchId, order.units, 'interactive');
    observeDone(facts, { ...report, doneAt: clock.now() }, observers);
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

  /** The deadline passed while it waited here: written as its outcome, so that the request ends. */
  async #expire(item: ServedItem): Promise<UnitEnd> {
    const { unit } = item;
    const error = itemError('deadline_exceeded', 'the deadline passed while the item waited for its batch');
    this.#deps.observers.life.expired({
      trace_id: unit.traceId,
      request_id: unit.requestId,
      at: 'batch_close',
    });
    const [write] = await this.#deps.store.writeOutcomes([
      { unit, kind: 'expired', frame: errorFrame({ error }) },
    ]);
    return { kind: 'written', ok: false, code: error.code, ended: write?.ended ?? null };
  }
}
