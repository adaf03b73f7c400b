/**
 * Brings rows to their answers: sends a chunk, waits for its end, and sees to it that in the end each of its rows has
 * exactly one answer in the journal. What can pass is tried again; what a worker cannot read goes by payload; what fails
 * together is parted. A chunk that a life before has sent is found by its id, which is made from nothing but the rows.
 */
import type { ItemError } from '@remuda/schemas';
import { itemError, RemudaError, toItemError } from '../../errors.js';
import type { Clock } from '../../lifecycle/clock.js';
import type { Target } from '../../models/model-resolver.js';
import type { ChunkOrder, ChunkResult, OutputChoice } from '../chunk.js';
import { type ChunkDoor, type ChunkEnd, chunkIdOf, type NewChunk } from '../chunk-door.js';
import type { OpenedInput } from '../input/bulk-input.js';
import type { BulkSpec } from '../job-record.js';
import { wantedColumns } from '../wanted-columns.js';
import { guiltyRow } from './guilty-row.js';
import type { CutPiece, Settled } from './journal-entries.js';
import type { Task } from './ledger.js';
import type { Patience } from './patience.js';
import type { KilledRows } from './splitting.js';
import type { CoordinatorTools, JobOutput } from './tools.js';
import { PauseJob } from './ways-out.js';
import type { WorkLog } from './work-log.js';

/** A wait for an answer is asked anew this often. */
const WAIT_MS = 5_000;
/** Soon enough after a Redis that comes back. */
const BACKOFF_MS = { first: 250, most: 3_000 };
/** Failures of a part that are kept beside it, to be shown. */
const SHOWN = 5;
/** Rows of the chunk cannot be told from each other by these. */
const NOT_THE_ROWS = new Set(['invalid_file', 'file_not_found', 'invalid_parameter', 'unsupported_feature']);
/** Of rows that were run, and are run again in halves. */
const RAN = new Set(['runner_crashed', 'run_timeout']);
const MODEL_GONE = new Set(['model_not_found', 'version_not_found', 'alias_not_found']);

export interface CarrierDeps {
  spec: BulkSpec;
  settled: Settled;
  target: Target;
  choice: OutputChoice;
  door: ChunkDoor;
  input: OpenedInput;
  log: WorkLog;
  output: JobOutput;
  rows: CoordinatorTools['rows'];
  patience: Patience;
  clock: Clock;
  priority(): number;
  /** Told in order: it has ended and is being written; it is in the journal. */
  ended(task: Task, bytes: number): void;
  kept(task: Task, result: ChunkResult, bytes: number): void;
  /** Rows that are run again: their chunk was lost. */
  repeated(rows: number): void;
}

export class ChunkCarrier {
  readonly #deps: CarrierDeps;
  /** Ids of a task's chunks, in the order of the tries. */
  readonly #sent = new WeakMap<Task, string[]>();

  constructor(deps: CarrierDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when its rows are answered, or parted into tasks of their own, or the signal says to stop.
   * @param resumed a life before may have sent it
   * @throws PauseJob, RemudaError: the job cannot go on
   */
  async carry(task: Task, resumed: boolean, signal: AbortSignal): Promise<void> {
    const { log, spec } = this.#deps;
    const ids: string[] = [];
    this.#sent.set(task, ids);
    for (let attempt = 0; !signal.aborted; attempt++) {
      const id = chunkIdOf(spec.id, task.firstRow, task.rows, `${log.ledger.round}.${attempt}`);
      ids.push(id);
      const end = await this.#endOf(id, task, { resumed, first: attempt === 0 }, signal);
      if (!end) return;
      if (end.again > 0) this.#deps.repeated(end.again * task.rows);
      if (end.kind === 'done') {
        const other = this.#otherFiles(end.result);
        if (other) {
          // Once the files are put back, it must not be found.
          await this.#forget(ids);
          throw new PauseJob(other);
        }
        await this.#keep(task, end.result, end.bytes);
        return this.#forget(ids);
      }
      if (!(await this.#failed(task, end.error, attempt, signal))) continue;
      return this.#forget(ids);
    }
  }

  /** Ends what is under way of these rows: they are not wanted any more. */
  async cancel(task: Task): Promise<void> {
    const { door } = this.#deps;
    // Of a chunk that was tried again only the last is open, and one that is over is no error.
    for (const id of this.#sent.get(task) ?? []) {
      await door.cancel(id).catch(() => undefined);
      await door.forget(id).catch(() => undefined);
    }
  }

  /** Why an answer is not one of the model that the job began with; null: it is. */
  #otherFiles({ digest }: ChunkResult): ItemError | null {
    const { settled } = this.#deps;
    if (!digest || !settled.digest || digest === settled.digest) return null;
    return itemError(
      'version_not_found',
      `${settled.model}@${settled.version} has other files (digest ${digest.slice(0, 12)}) than when the job began (${settled.digest.slice(0, 12)}): the answers would not be of one model. Put the old files back and resume the job, or start a new one`,
    );
  }

  /** null: it was stopped. */
  async #endOf(
    id: string,
    task: Task,
    { resumed, first }: { resumed: boolean; first: boolean },
    signal: AbortSignal,
  ): Promise<Exclude<ChunkEnd, { kind: 'gone' }> | null> {
    let known = resumed ? await this.#wait(id, 0, signal) : ({ kind: 'gone' } as const);
    if (resumed && first && known?.kind === 'gone') this.#deps.repeated(task.rows);
    for (let wait = 0; !signal.aborted; ) {
      if (known?.kind === 'gone') {
        if (!(await this.#submit(id, task, signal))) return null;
        // Not the rows that have failed, but Redis: the same again.
        if (wait++ > 0) this.#deps.repeated(task.rows);
      } else if (known) return known;
      known = await this.#wait(id, WAIT_MS, signal);
    }
    return null;
  }

  async #wait(id: string, ms: number, signal: AbortSignal): Promise<ChunkEnd | null> {
    const { door, patience } = this.#deps;
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        return await door.wait(id, ms, signal);
      } catch (error) {
        if (signal.aborted) return null;
        patience.bear(passing(error));
        await this.#rest(tries, null, signal);
      }
    }
    return null;
  }

  /** False: it was stopped. */
  async #submit(id: string, task: Task, signal: AbortSignal): Promise<boolean> {
    const { door, patience } = this.#deps;
    const chunk = await this.#chunkOf(id, task);
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        await door.submit({ ...chunk, priority: this.#deps.priority() });
        return true;
      } catch (error) {
        const reason = passing(error);
        patience.bear(reason);
        await this.#rest(tries, retryAfterOf(reason), signal);
      }
    }
    return false;
  }

  async #chunkOf(id: string, task: Task): Promise<NewChunk> {
    const { spec, settled, target, choice, log, input } = this.#deps;
    const piece = log.ledger.pieceOf(task.firstRow);
    const from = task.firstRow - piece.firstRow;
    const whole = task.rows === piece.rows;
    const byPayload = log.ledger.byPayload || piece.range.kind === 'payload' || piece.source === null;
    const payload = byPayload ? await input.payloadOf(piece, wantedColumns(settled.mapping)) : null;
    const order: ChunkOrder = {
      job: spec.id,
      firstRow: piece.firstRow,
      rows: piece.rows,
      source: byPayload ? null : piece.source,
      range: byPayload ? asPayload(piece) : piece.range,
      ...(whole ? {} : { slice: { from, to: from + task.rows } }),
      read: settled.read,
      mapping: settled.mapping,
      choice,
    };
    const { tenant, keyId, traceId } = spec;
    return { id, target, tenant, keyId, traceId, priority: this.#deps.priority(), order, payload };
  }

  /** @returns whether the task has come to its end */
  async #failed(task: Task, error: ItemError, attempt: number, signal: AbortSignal): Promise<boolean> {
    const { log, patience, settled } = this.#deps;
    if (signal.aborted) return false;
    if (error.code === 'source_unreadable' && !log.ledger.byPayload) {
      await log.commit({ k: 'payload' });
      return false;
    }
    if (MODEL_GONE.has(error.code)) throw new PauseJob(error);
    if (NOT_THE_ROWS.has(error.code)) throw new RemudaError(error.code, error.message, error.details);
    // Somebody has cancelled the chunk itself; its rows are wanted all the same.
    if (error.retryable || error.code === 'cancelled') {
      patience.bear(error);
      await this.#rest(attempt, null, signal);
      return false;
    }
    if (task.rows > 1) {
      const killed = killedOf(error);
      await log.commit({ k: 'split', firstRow: task.firstRow, rows: task.rows, ...(killed && { killed }) });
      if (RAN.has(error.code)) this.#deps.repeated(task.rows);
      return true;
    }
    const piece = log.ledger.pieceOf(task.firstRow);
    const payload = piece.range.kind === 'payload' ? await this.#deps.input.payloadOf(piece) : null;
    const row = await guiltyRow(task, error, { piece, payload, settled, rows: this.#deps.rows });
    await this.#keep(task, row, 0);
    return true;
  }

  async #keep(task: Task, result: ChunkResult, bytes: number): Promise<void> {
    const { log, output, patience } = this.#deps;
    if (result.firstRow !== task.firstRow || result.rows !== task.rows)
      throw new Error(
        `the answer of rows ${task.firstRow} to ${task.firstRow + task.rows} is about ${result.firstRow} and ${result.rows} more`,
      );
    patience.refresh();
    this.#deps.ended(task, bytes);
    const { bytes: data, meta } = await output.encoder.encode(result);
    const failures = result.failures.slice(0, SHOWN).map(({ index, error }) => ({
      row: result.rowNumbers?.[index] ?? result.firstRow + index,
      code: error.code,
      message: error.message.slice(0, 300),
    }));
    await log.commit({
      firstRow: task.firstRow,
      rows: task.rows,
      failed: result.failures.length,
      data,
      errors: await output.errorLines(result),
      ...(meta === undefined ? {} : { meta }),
      worker: result.workerId,
      device: result.device,
      seconds: result.seconds,
      ...(failures.length > 0 ? { failures } : {}),
    });
    this.#deps.kept(task, result, bytes);
  }

  /** Should it fail, time takes them: they are kept for a day. */
  async #forget(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#deps.door.forget(id).catch(() => undefined)));
  }

  /** Longer after each try; ends at once when it is stopped. */
  async #rest(tries: number, afterMs: number | null, signal: AbortSignal): Promise<void> {
    const ms = afterMs ?? Math.min(BACKOFF_MS.first * 2 ** Math.min(tries, 10), BACKOFF_MS.most);
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#deps.clock.after(ms, done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}

function killedOf({ details }: ItemError): KilledRows | undefined {
  const { rows_done: done, rows_running: running } = details ?? {};
  return typeof done === 'number' && typeof running === 'number' ? { done, running } : undefined;
}

function asPayload({ range }: CutPiece): ChunkOrder['range'] {
  return range.kind === 'rows' ? { kind: 'payload' } : { ...range, kind: 'payload' };
}

/** @throws what cannot pass */
function passing(error: unknown): ItemError {
  const reason = toItemError(error);
  if (MODEL_GONE.has(reason.code)) throw new PauseJob(reason);
  if (!reason.retryable) throw error;
  return reason;
}

function retryAfterOf({ details }: ItemError): number | null {
  const ms = details?.retry_after_ms ?? details?.retryAfterMs;
  return typeof ms === 'number' ? Math.min(ms, BACKOFF_MS.most) : null;
}
