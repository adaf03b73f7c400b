/**
 * Runs one batch in the runner process and finds out whose fault it is when that fails. File 7 of the tour: what
 * crosses to the child is a list of units (ids, tokens); it fetches inputs and writes outcomes itself.
 *
 * Why one bad input cannot hurt its neighbours: a run that fails is halved, and the halves are run again, until the
 * guilty unit stands alone and fails alone. Where the runner died, the halves run with nothing else inside, since the
 * death of a process does not say which of its batches it was.
 *
 * Next: core/inference/batch-flow.ts in the runner, then core/harness/kinds/onnx.ts.
 */
import { encodeFrame, type ItemError, type TerminalStatus } from '@remuda/schemas';
import { itemError, toItemError } from '../errors.js';
import { isShadowId } from '../models/shadow-id.js';
import type { OutcomeExtras, UnitWrite, WriteVerdict } from '../store/outcome.js';
import { type BatchOrder, type BatchReport, RunnerLostError } from './runner-life.js';
import type { BatchUnit } from './runner-protocol.js';
import type { SharedGate } from './shared-gate.js';
import { outcomeOfWrite } from './write-outcomes.js';

/** How a unit ended, as the worker needs to know it. */
export type UnitEnd =
  | { kind: 'written'; ok: boolean; code?: string; ended: TerminalStatus | null }
  | { kind: 'dropped'; reason: 'already_terminal' | 'fenced' | 'record_missing' | 'expired' }
  /** Nothing is known to be wrong with it: another worker, or a later attempt, may run it. */
  | { kind: 'unavailable'; error: ItemError };

/** The runner as this file needs it. @throws RunnerLostError, or any error when no runner can be had */
export interface BatchExecutor {
  run(order: BatchOrder): Promise<BatchReport>;
}

export interface RunBatchDeps {
  runner: BatchExecutor;
  /** Of the runner, shared by all models in it: alone means alone in the process. */
  gate: SharedGate;
  store: { writeOutcomes(writes: readonly UnitWrite[]): Promise<WriteVerdict[]> };
  newBatchId(): string;
  /** Told of each run, good or bad: for metrics and the log. */
  onReport?(order: BatchOrder, report: BatchReport): void;
  onBisect?(order: BatchOrder, error: ItemError): void;
  /** Whether an item that has failed so gets another attempt; then nothing is written. Default: never. */
  triesAgain?(unit: BatchUnit, error: ItemError): boolean;
  /** The runner was lost, and nothing but this can be the cause. */
  onKilled?(order: BatchOrder): void;
}

/** A batch that was not running when its runner died is run again this often before it is taken for a suspect. */
const INNOCENT_TRIES = 3;

export class BatchRunner {
  readonly #deps: RunBatchDeps;
  #stopping = false;

  constructor(deps: RunBatchDeps) {
    this.#deps = deps;
  }

  /** From now on the loss of a runner is nobody's fault: its units are handed back. */
  stop(): void {
    this.#stopping = true;
  }

  /** The end of each unit, in order. Never rejects for the fault of a unit. */
  async run(order: BatchOrder, tries = 0): Promise<UnitEnd[]> {
    try {
      const report = await this.#deps.gate.shared(() => this.#deps.runner.run(order));
      return await this.#settle(order, report, (half) => this.run(half));
    } catch (error) {
      if (!(error instanceof RunnerLostError) || this.#stopping) return unavailable(order, error);
      if (!error.suspect && tries < INNOCENT_TRIES) return this.run(again(order, this.#deps), tries + 1);
      return this.#afterLoss(order, error);
    }
  }

  /**
   * The runner died while this batch ran. When only this batch can be the cause, its halves are tried; when another
   * ran too, the whole is tried once more, alone. A single unit is tried once more, too: that the process died with it
   * does not yet tell a poisonous input from a kill from outside. A time-out tells.
   */
  async #afterLoss(order: BatchOrder, loss: RunnerLostError): Promise<UnitEnd[]> {
    const copies = order.units.filter(({ requestId }) => isShadowId(requestId));
    if (copies.length > 0) return this.#withoutCopies(order, copies, loss);
    this.#deps.onBisect?.(order, lossError(loss, order));
    const certain = loss.suspect && loss.suspects === 1;
    if (certain) this.#deps.onKilled?.(order);
    // To part a chunk blames nobody, and who sent it does that by itself.
    if (certain && isManyRows(order)) return this.#fail(order.units, lossError(loss, order));
    if (order.units.length > 1 && certain) return this.#halves(order, (half) => this.#runAlone(half));
    if (certain && loss.reason === 'timed_out') return this.#fail(order.units, lossError(loss, order));
    return this.#runAlone({ ...again(order, this.#deps), begun: order.begun || loss.suspect });
  }

  /** Nobody waits for the copies of a shadow: they end here, or the search would hold up all that do not crash. */
  async #withoutCopies(
    order: BatchOrder,
    copies: readonly BatchUnit[],
    loss: RunnerLostError,
  ): Promise<UnitEnd[]> {
    const units = order.units.filter((unit) => !copies.includes(unit));
    const ended = await this.#fail(copies, lossError(loss, order));
    const others = units.length === 0 ? [] : await this.#afterLoss({ ...order, units }, loss);
    const ends = new Map<BatchUnit, UnitEnd | undefined>();
    for (const [i, unit] of copies.entries()) ends.set(unit, ended[i]);
    for (const [i, unit] of units.entries()) ends.set(unit, others[i]);
    return order.units.map((unit) => ends.get(unit) as UnitEnd);
  }

  /** Runs with nothing else in the runner, so that its death has one cause. */
  async #runAlone(order: BatchOrder, tries = 0): Promise<UnitEnd[]> {
    try {
      const report = await this.#deps.gate.exclusive(() => this.#deps.runner.run(order));
      return await this.#settle(order, report, (half) => this.#runAlone(half));
    } catch (error) {
      if (!(error instanceof RunnerLostError) || this.#stopping) return unavailable(order, error);
      // It died before it ran this, while it loaded a model, say: that blames nobody.
      if (!error.suspect && tries < INNOCENT_TRIES)
        return this.#runAlone(again(order, this.#deps), tries + 1);
      if (error.suspect) this.#deps.onKilled?.(order);
      if (order.units.length === 1) return this.#fail(order.units, lossError(error, order));
      this.#deps.onBisect?.(order, lossError(error, order));
      return this.#halves(order, (half) => this.#runAlone(half));
    }
  }

  /** Takes what was written as it is; runs again what failed together with others. */
  async #settle(
    order: BatchOrder,
    report: BatchReport,
    rerun: (half: BatchOrder) => Promise<UnitEnd[]>,
  ): Promise<UnitEnd[]> {
    this.#deps.onReport?.(order, report);
    const ends: (UnitEnd | undefined)[] = report.outcomes.map((outcome) =>
      outcome.kind === 'run_failed' ? undefined : outcome,
    );
    const failures = report.outcomes.flatMap((outcome, index) =>
      outcome.kind === 'run_failed' ? [{ index, outcome }] : [],
    );
    for (const { index, outcome } of failures.filter((failure) => failure.outcome.alone)) {
      [ends[index]] = await this.#fail([order.units[index] as BatchUnit], outcome.error);
    }
    const together = failures.filter((failure) => !failure.outcome.alone);
    if (together.length > 0) {
      const rest = { ...order, units: together.map(({ index }) => order.units[index] as BatchUnit) };
      this.#deps.onBisect?.(rest, (together[0] as (typeof together)[number]).outcome.error);
      const found = await this.#halves(rest, rerun);
      together.forEach(({ index }, k) => {
        ends[index] = found[k];
      });
    }
    return ends as UnitEnd[];
  }

  async #halves(order: BatchOrder, run: (half: BatchOrder) => Promise<UnitEnd[]>): Promise<UnitEnd[]> {
    const middle = Math.ceil(order.units.length / 2);
    const ends: UnitEnd[] = [];
    for (const units of [order.units.slice(0, middle), order.units.slice(middle)]) {
      // What ran and failed has met its deadline to start.
      if (units.length > 0) ends.push(...(await run({ ...again(order, this.#deps), units, begun: true })));
    }
    return ends;
  }

  /** Writes the reason as the outcome of each unit, unless the unit is to have another attempt. */
  async #fail(units: readonly BatchUnit[], error: ItemError): Promise<UnitEnd[]> {
    const again = new Set(units.filter((unit) => this.#deps.triesAgain?.(unit, error)));
    const given = units.filter((unit) => !again.has(unit));
    const frame = errorFrame({ error });
    const verdicts =
      given.length === 0
        ? []
        : await this.#deps.store.writeOutcomes(given.map((unit) => ({ unit, kind: 'error', error, frame })));
    const ends = new Map(given.map((unit, i) => [unit, verdicts[i]]));
    return units.map((unit): UnitEnd => {
      const write = ends.get(unit);
      return write ? outcomeOfWrite(write, error.code) : { kind: 'unavailable', error };
    });
  }
}

/** The outcome frame of an item that has no outputs. */
export function errorFrame(extras: OutcomeExtras): Buffer {
  return encodeFrame('outputs', [], { ...extras });
}

/** Of a chunk with how far it had got: whoever parts it looks there first. */
function lossError(loss: RunnerLostError, order: BatchOrder): ItemError {
  const { done, running } = loss.rows;
  const details = isManyRows(order) ? { rows_done: done, rows_running: running } : undefined;
  if (loss.reason === 'timed_out')
    return itemError(
      'run_timeout',
      'the run took longer than timeout_ms of the model; the runner was replaced',
      details,
    );
  const how = loss.signal ?? `exit code ${loss.code}`;
  return itemError(
    'runner_crashed',
    `the runner process died while it ran the item (${how}); it was replaced`,
    details,
  );
}

function isManyRows({ chunk, units: [unit] }: BatchOrder): boolean {
  return chunk === true && unit !== undefined && unit.rows > 1;
}

/** The same units under an id of their own: each id names one crossing to the runner. */
function again(order: BatchOrder, { newBatchId }: RunBatchDeps): BatchOrder {
  return { ...order, batchId: newBatchId() };
}

function unavailable(order: BatchOrder, cause: unknown): UnitEnd[] {
  const error = toItemError(cause, 'worker_lost');
  return order.units.map(() => ({ kind: 'unavailable', error }));
}
