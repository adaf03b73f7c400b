/**
 * One life of the coordinator of a bulk job: takes the job (from then on lives before it can write nothing), reads what
 * they have done, and brings the job to its end, to a pause, or to where the next life goes on. What is done stands in
 * the journal (work-folder.ts); Redis is told (job-book.ts) and asked what is wanted (job-control.ts).
 *
 *   validating.ts → scoring.ts with chunk-carrier.ts → finishing.ts → job-told.ts
 */
import { type BulkJobStatus, type ItemError, isBulkTerminal } from '@remuda/schemas';
import { RemudaError, toItemError } from '../../errors.js';
import { Repeat } from '../../fleet/repeat.js';
import type { Clock } from '../../lifecycle/clock.js';
import type { Logger } from '../../observability/logger.js';
import type { Redis } from '../../store/redis.js';
import type { WebhookOutbox } from '../../webhooks/outbox.js';
import { type ChunkDoor, chunkIdOf } from '../chunk-door.js';
import type { BulkFault, BulkState, StoredBulkJob } from '../job-record.js';
import type { BulkJobStore } from '../job-store.js';
import { writeFault } from '../output/disk-faults.js';
import { ChunkCarrier } from './chunk-carrier.js';
import { finishJob } from './finishing.js';
import { JobBook } from './job-book.js';
import { JobControl } from './job-control.js';
import { tellEnd } from './job-told.js';
import { Ledger } from './ledger.js';
import { Patience } from './patience.js';
import { ProgressMeter } from './progress.js';
import { Scoring, type StopMode } from './scoring.js';
import { ChunkSizes, SIZING } from './sizing.js';
import { faultsOf, isShut, withoutPath } from './told-faults.js';
import type { CoordinatorTools, JobOutput } from './tools.js';
import { checkIds, type Opened, openJob, reopenJob, type ValidatingDeps } from './validating.js';
import { Fenced, Left, PauseJob, wayOut } from './ways-out.js';
import { type FoundWork, WorkFolder } from './work-folder.js';
import { WorkLog } from './work-log.js';
import { type CoordinatorCounts, WorkMeter } from './work-meter.js';

export interface CoordinatorDeps {
  jobId: string;
  store: BulkJobStore;
  subscriber: Redis;
  door: ChunkDoor;
  tools: CoordinatorTools;
  outbox: Pick<WebhookOutbox, 'enqueueEvent'>;
  clock: Clock;
  logger: Logger;
  /** Told what has been done since the last call, at most once a second. */
  report(counts: CoordinatorCounts): void;
  /** It was asked to pause or to cancel and is still there two minutes later: the process should end. Default: nothing. */
  onDeaf?(): void;
  /** How long trouble of the model is borne. */
  patienceMs?: number;
  /** How often progress is written, in milliseconds; default a second. */
  tickMs?: number;
  /** Seconds that a chunk should take. */
  chunkSeconds?: number;
}

/** ended, paused: nothing is to be done now. left: somebody else is to go on. fenced: somebody else does. */
export type CoordinatorEnd = 'ended' | 'paused' | 'left' | 'fenced' | 'gone';

const TICK_MS = 1_000;
/** Longer than a chunk that is under way takes. */
const DEAF_AFTER_MS = 120_000;
/** More than a life has in its hands at once. */
const LEFTOVERS = 64;

export class Coordinator {
  readonly #deps: CoordinatorDeps;
  readonly #meter = new ProgressMeter();
  readonly #work: WorkMeter;
  readonly #patience: Patience;
  /** Of what cannot be left in the middle otherwise. */
  readonly #stop = new AbortController();
  #job!: StoredBulkJob;
  #folder!: WorkFolder;
  #book!: JobBook;
  #control!: JobControl;
  #log: WorkLog | undefined;
  #cancelWatch: () => void = () => {};
  /** Why the work folder cannot be read. */
  #unreadable: unknown;
  #opened: Opened | undefined;
  #output: JobOutput | undefined;
  #scoring: Scoring | undefined;
  #leaving = false;
  #fenced = false;

  constructor(deps: CoordinatorDeps) {
    this.#deps = deps;
    this.#work = new WorkMeter({
      ...{ clock: deps.clock, report: deps.report },
      chunksInFlight: () => this.#scoring?.underWay.chunks ?? 0,
    });
    this.#patience = new Patience(deps.clock, deps.patienceMs);
  }

  /** Leaves off as soon as what has an answer is in the journal. */
  leave(): void {
    this.#leaving = true;
    this.#stop.abort();
    this.#scoring?.wake();
  }

  async run(): Promise<CoordinatorEnd> {
    const { store, jobId } = this.#deps;
    const job = await store.read(jobId);
    if (!job) return 'gone';
    this.#folder = new WorkFolder(job.spec.work);
    const found = await this.#folder.read().catch((error: unknown) => this.#unread(error));
    const epoch = await store.take(jobId, found.epoch);
    if (epoch === null) return 'gone';
    // Read again: what was wanted before this life is known to it.
    this.#job = (await store.read(jobId)) ?? job;
    this.#book = new JobBook(store, jobId, epoch, this.#job.state);
    this.#control = this.#newControl(epoch);
    const ticks = new Repeat({
      ...{ everyMs: this.#deps.tickMs ?? TICK_MS, clock: this.#deps.clock, turn: () => this.#tick() },
      onError: (error) => this.#warn(error),
    });
    try {
      await this.#control.start();
      await ticks.start();
      return await this.#live(found, epoch);
    } catch (error) {
      if (error instanceof Fenced || this.#fenced) return 'fenced';
      if (error instanceof Left || this.#leaving) return 'left';
      throw error;
    } finally {
      this.#cancelWatch();
      await ticks.stop();
      await this.#control.stop();
      await this.#work.note().catch(() => undefined);
      await this.#log?.close().catch(() => undefined);
      await this.#opened?.input.close().catch(() => undefined);
    }
  }

  async #live(found: FoundWork, epoch: number): Promise<CoordinatorEnd> {
    // It came to its end, and the life that brought it there has not told everybody.
    if (isBulkTerminal(this.#book.state.status)) return this.#tell();
    try {
      if (this.#unreadable) throw this.#unreadable;
      const { work } = this.#job.spec;
      const kept = await this.#ownWork(found);
      this.#log = await WorkLog.begin({
        ...{ folder: new WorkFolder(work), found: kept, job: this.#job.spec.id, epoch },
        now: this.#deps.clock.now(),
      });
      return await this.#run();
    } catch (error) {
      const told = isShut(error) ? await writeFault(this.#folder.path, error) : error;
      const way = wayOut(told, this.#log?.ledger.settled != null);
      if (way instanceof Fenced || this.#leaving || this.#fenced) throw way;
      // Before the first row there is nothing to be left in order.
      if (this.#isInterrupted())
        return this.#wants() === 'cancel' ? this.#end('cancelled') : this.#pause(null);
      if (way instanceof PauseJob) return this.#pause(way.reason);
      if (way instanceof RemudaError) return await this.#fail(way);
      // Not foreseen: the process ends, and the next one tries again.
      throw way;
    }
  }

  async #run(): Promise<CoordinatorEnd> {
    const { ledger } = this.#log as WorkLog;
    if (this.#wants() === 'cancel' && !ledger.settled) return this.#end('cancelled');
    if (this.#wants() === 'pause' && !ledger.settled) return this.#pause(null);
    await this.#open();
    await this.#recall();
    await this.#forgetLeftovers();
    const { state } = this.#book;
    const begun = state.times.in_progress ?? this.#deps.clock.now();
    const status = this.#wants() === 'cancel' ? 'cancelling' : 'in_progress';
    await this.#book.write({
      ...{ status, reason: null, faults: [], times: { ...state.times, in_progress: begun } },
      progress: this.#progress(),
    });
    let score = await this.#score();
    // Resumed while the last of what was under way was finished.
    while (score !== 'all' && this.#stopMode() === null) score = await this.#score();
    if (score === 'all') return this.#end(state.only ?? 'completed');
    if (this.#leaving) throw new Left('the worker stops');
    if (this.#fenced) throw new Fenced('a newer life has the job');
    if (this.#isExpired()) return this.#end('expired');
    if (this.#wants() === 'cancel') return this.#end('cancelled');
    return this.#pause(null);
  }

  /** The job ends with that reason, once it is this life's. */
  #unread(error: unknown): FoundWork {
    if (!isShut(error)) throw error;
    this.#unreadable = error;
    return { ledger: new Ledger(), lives: [], epoch: 0, job: null };
  }

  /** What an owner may go on with who starts the same job anew, since Redis has lost it. */
  async #ownWork(found: FoundWork): Promise<FoundWork> {
    const { spec } = this.#job;
    if (found.job === null || found.job === spec.id) return found;
    const other = await this.#deps.store.read(found.job);
    if (other && !isBulkTerminal(other.state.status))
      throw new RemudaError(
        'output_exists',
        `bulk job ${found.job} (${other.state.status}) writes ${spec.output.uri}: wait for its end, cancel it, or choose another output`,
      );
    if (!other) {
      const lost = await this.#sameAs(found);
      if (lost) return found;
    }
    await this.#folder.remove();
    return { ...(await this.#folder.read()), epoch: found.epoch };
  }

  async #sameAs({ ledger }: FoundWork): Promise<boolean> {
    const { settled } = ledger;
    if (!settled) return false;
    this.#opened = await openJob(this.#validating());
    return JSON.stringify(this.#opened.settled) === JSON.stringify(settled);
  }

  async #open(): Promise<void> {
    const log = this.#log as WorkLog;
    const { settled } = log.ledger;
    const { spec } = this.#job;
    this.#opened ??= await (settled
      ? reopenJob(settled, log.ledger.next.row, this.#validating())
      : openJob(this.#validating()));
    const { target, input } = this.#opened;
    const { mapping } = this.#opened.settled;
    const { tools, door } = this.#deps;
    this.#output = await tools.output({
      ...{ spec, mapping, columns: input.columns, signature: door.signatureOf(target) },
    });
    await log.writeHead(this.#output.encoder.head);
    if (!settled) {
      await this.#delivery('begun').check();
      await checkIds(this.#opened, this.#validating());
      await log.commit({ k: 'settled', settled: this.#opened.settled });
    }
    await this.#book.write({
      model: this.#opened.settled.model,
      version: this.#opened.settled.version,
      map: tools.mapTexts(mapping),
    });
  }

  /** What was asked for while no life was there. */
  async #recall(): Promise<void> {
    const log = this.#log as WorkLog;
    const { state } = this.#book;
    // Work of a lost job, which has had rounds that this one knows nothing of.
    if (state.round < log.ledger.round) await this.#book.write({ round: log.ledger.round });
    if (state.round > log.ledger.round) await log.commit({ k: 'retry', round: state.round });
    if (state.forgive) {
      await log.commit({ k: 'forgive', failed: log.ledger.rowsFailed });
      await this.#book.write({ forgive: false });
    }
  }

  /** Chunks whose answers a life before has kept, and had no time to take away. */
  async #forgetLeftovers(): Promise<void> {
    const { ledger } = this.#log as WorkLog;
    const { door, jobId } = this.#deps;
    for (const { firstRow, rows } of ledger.takeRecent().slice(-LEFTOVERS)) {
      const id = chunkIdOf(jobId, firstRow, rows, `${ledger.round}.0`);
      await door.forget(id).catch(() => undefined);
    }
  }

  async #score(): Promise<'all' | 'stopped'> {
    const log = this.#log as WorkLog;
    const { input, settled, target } = this.#opened as Opened;
    const { door, clock, tools, chunkSeconds = SIZING.seconds } = this.#deps;
    const { spec } = this.#job;
    const sizes = new ChunkSizes(settled.batchRows, {
      ...{ ...SIZING, seconds: chunkSeconds, mostRows: spec.chunkRows ?? null },
    });
    const { outputs, topK, argmax } = spec.output;
    const scoring = new Scoring({
      ...{ spec, settled, log, input, sizes },
      pace: () => door.pace(target),
      stop: () => this.#stopMode(),
      cutNoMore: this.#book.state.only !== null,
    });
    this.#scoring = scoring;
    const carrier = new ChunkCarrier({
      ...{ spec, settled, target, door, input, log, clock },
      ...{ output: this.#output as JobOutput, rows: tools.rows, patience: this.#patience },
      choice: { ...(outputs && { outputs }), ...(topK && { topK }), ...(argmax && { argmax }) },
      priority: () => this.#control.priority,
      ended: (task, bytes) => scoring.ended(task, bytes),
      kept: ({ rows }, { seconds }, bytes) => {
        // At once for the first: a life that has done something is not one that cannot live.
        if (!this.#work.hasReported) this.#work.report();
        if (seconds > 0) sizes.ended({ rows, seconds, bytes });
      },
      repeated: (rows) => this.#work.repeated(rows),
    });
    this.#work.begin(log);
    try {
      return await scoring.run(carrier);
    } finally {
      await this.#work.end();
    }
  }

  #stopMode(): StopMode | null {
    if (this.#leaving || this.#fenced) return 'leave';
    const wanted = this.#wants();
    if (wanted === 'cancel' || this.#isExpired()) return 'cut';
    return wanted === 'pause' ? 'drain' : null;
  }

  async #end(
    status: Extract<BulkJobStatus, 'completed' | 'failed' | 'cancelled' | 'expired'>,
    reason: ItemError | null = null,
    faults: BulkFault[] = [],
  ): Promise<CoordinatorEnd> {
    // To join what is done may take its time.
    this.#cancelWatch();
    const { clock, tools, logger } = this.#deps;
    const log = this.#log;
    const times = { ...this.#book.state.times };
    if (log?.ledger.settled && this.#opened && this.#output) {
      times.finalizing = clock.now();
      const shown = status === 'cancelled' ? 'cancelling' : 'finalizing';
      await this.#book.write({ status: shown, times, progress: this.#progress() });
      const given = await finishJob({
        ...{ spec: this.#job.spec, folder: this.#folder, log, opened: this.#opened, output: this.#output },
        ...{
          rows: tools.rows,
          expired: status === 'expired',
          last: status === 'completed',
          delivery: this.#delivery(status),
        },
        goOn: () => this.#goOn(),
      });
      await this.#book.write(given);
    }
    times[status] = clock.now();
    await this.#book.write({ status, reason, faults, times, progress: this.#progress() });
    logger.info({ batch_id: this.#job.spec.id, status, code: reason?.code }, 'bulk job ended');
    return this.#tell();
  }

  /** What is done is given, or waits until there is room for it. */
  async #fail(why: RemudaError): Promise<CoordinatorEnd> {
    const { fileId } = this.#job.spec.input;
    try {
      return await this.#end(
        'failed',
        withoutPath(toItemError(why), fileId),
        withoutPath(faultsOf(why), fileId),
      );
    } catch (error) {
      const way = wayOut(error, true);
      if (way instanceof PauseJob) return this.#pause(way.reason);
      throw way;
    }
  }

  /** Whoever wants to know, at least once; then nothing more is to be done for the job. */
  async #tell(): Promise<CoordinatorEnd> {
    const { state } = this.#book;
    const job = { ...this.#job, state, wanted: 'run' as const };
    await tellEnd(job, this.#deps.outbox);
    // All is done and nothing can be done again.
    if (state.status === 'completed' && state.progress.rows_failed === 0) {
      await this.#log?.close().catch(() => undefined);
      await this.#folder.remove();
    }
    await this.#book.write({}, this.#deps.clock.now());
    return 'ended';
  }

  async #pause(reason: ItemError | null): Promise<CoordinatorEnd> {
    await this.#book.write({ status: 'paused', reason, progress: this.#progress() });
    this.#deps.logger.info({ batch_id: this.#job.spec.id, code: reason?.code }, 'bulk job paused');
    return 'paused';
  }

  #delivery(status: string) {
    const { epoch, ledger } = this.#log as WorkLog;
    const { path } = this.#folder;
    const files = {
      ...{ output: `${path}/output.${epoch}`, errors: `${path}/failed.${epoch}` },
      mark: `${ledger.round}.${ledger.rowsDone}.${ledger.rowsFailed}.${status}`,
      whole: status === 'begun' || status === 'completed',
    };
    return this.#deps.tools.delivery({ ...this.#job, state: this.#book.state as BulkState }, files);
  }

  #validating(): ValidatingDeps {
    const { tools, door, clock } = this.#deps;
    return {
      ...{ spec: this.#job.spec, work: this.#folder.path, tools, door, clock, patience: this.#patience },
      signal: this.#stop.signal,
      goOn: () => this.#goOn(),
      fetched: (bytes, total) => {
        const { progress } = this.#book.state;
        void this.#book
          .progress({ ...progress, bytes_read: bytes, bytes_total: total })
          .catch((error: Error) => this.#warn(error));
      },
    };
  }

  /** Something else is wanted before the first row. */
  #isInterrupted(): boolean {
    if (this.#log?.ledger.settled) return false;
    return this.#wants() === 'cancel' || this.#wants() === 'pause';
  }

  /** @throws where this life is to go no further */
  #goOn(): void {
    if (this.#isInterrupted()) throw new Left(`${this.#wants()} was asked for`);
    if (this.#fenced) throw new Fenced('a newer life has the job');
    if (this.#leaving) throw new Left('the worker stops');
  }

  /** A life that hangs somewhere hears of nothing: it is ended, and the next one finds what is wanted. */
  #watchWish(): void {
    this.#cancelWatch();
    const { wanted } = this.#control;
    if (wanted !== 'cancel' && wanted !== 'pause') return;
    const { clock, onDeaf = () => {} } = this.#deps;
    this.#cancelWatch = clock.after(DEAF_AFTER_MS, onDeaf);
  }

  #newControl(epoch: number): JobControl {
    const { store, subscriber, clock } = this.#deps;
    return new JobControl({
      ...{ job: this.#job, epoch, store, subscriber, clock },
      onChange: () => {
        this.#showWish();
        this.#watchWish();
        this.#scoring?.wake();
      },
      onFenced: () => this.#fence(),
      onError: (error) => this.#warn(error),
    });
  }

  /** A pause is shown at once, while what is under way is finished. */
  #showWish(): void {
    // A fetch ends in the middle, and goes on there when it is resumed.
    if (this.#isInterrupted()) this.#stop.abort();
    if (!this.#work.isAtWork) return;
    const status = this.#stopMode() === 'drain' ? 'paused' : 'in_progress';
    if (this.#wants() === 'cancel' || this.#book.state.status === status) return;
    this.#book.write({ status }).catch((error: Error) => this.#warn(error));
  }

  #wants(): JobControl['wanted'] {
    return this.#control.wanted;
  }

  #isExpired(): boolean {
    const { expiresAt } = this.#job.spec;
    const { round, only } = this.#book.state;
    // All rows had been run in time: what has failed of them may be asked for anew at any time.
    const wasWhole = round > 0 && this.#log?.ledger.rowsTotal != null;
    return expiresAt !== null && this.#deps.clock.now() >= expiresAt && only === null && !wasWhole;
  }

  async #tick(): Promise<void> {
    if (!this.#work.isAtWork) return;
    this.#scoring?.wake();
    await this.#work.noteWhereDue();
    await this.#book.progress(this.#progress());
    this.#work.report();
  }

  #progress() {
    const { chunks, rows } = this.#scoring?.underWay ?? { chunks: 0, rows: 0 };
    const ledger = this.#log?.ledger;
    if (!ledger) return this.#book.state.progress;
    return this.#meter.read(
      ledger,
      {
        rowsInFlight: rows,
        chunksInFlight: chunks,
        bytesRead: this.#opened?.input.bytesAt(ledger.next) ?? ledger.bytesCut,
        rowsRepeated: this.#work.rowsRepeated,
        workingSeconds: this.#work.seconds,
      },
      this.#deps.clock.now(),
    );
  }

  #fence(): void {
    this.#fenced = true;
    this.#stop.abort();
    this.#scoring?.wake();
  }

  #warn(error: Error): void {
    if (error instanceof Fenced) this.#fence();
    else
      this.#deps.logger.warn(
        { err: error, batch_id: this.#deps.jobId },
        'bulk job: Redis; it is tried again',
      );
  }
}
