/**
 * One life of a runner process, from fork to death: what was asked of it and not yet answered, which batches run
 * natively at this moment, and the two watches on it (time-out of a native run, heartbeat of its main thread).
 * When it dies, everything unanswered is rejected with what is known. A new life is runner-process.ts's to begin.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { ModelSignature } from '@remuda/schemas';
import { ModelLoadError, RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import type { Clock } from '../lifecycle/clock.js';
import type { GoldenReport } from './golden-check.js';
import {
  assignSuspicion,
  type EndReason,
  endText,
  type LostRows,
  type RunnerEnd,
  RunnerLostError,
} from './runner-loss.js';
import type {
  BatchUnit,
  FromRunner,
  LoadStage,
  StoreAddress,
  ToRunner,
  UnitOutcome,
} from './runner-protocol.js';

export { type RunnerEnd, RunnerLostError } from './runner-loss.js';

export type RunnerLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  fields: Record<string, unknown>,
  message: string,
) => void;

export interface RunnerLifeOptions {
  entry: URL;
  /** Of the child; left out: this process's own. */
  environment?: NodeJS.ProcessEnv;
  device: string;
  store: StoreAddress;
  /** As in RunnerProcessOptions. */
  bulkShare?: number;
  clock: Clock;
  log: RunnerLog;
  /** How often the child's main thread is pinged. */
  heartbeatMs: number;
  /** After so many unanswered pings it counts as hung. Counted, not clocked: a paused parent must not kill it. */
  missedHeartbeats: number;
  /** A load that takes longer is given up. */
  loadTimeoutMs: number;
  /** Called once, before anything unanswered is rejected: whoever tries again then finds the successor. */
  onEnd(life: RunnerLife, end: RunnerEnd): void;
}

export interface LoadOptions {
  /** Told in order; from the start again where the process died and the load is tried once more. */
  onStage?(stage: LoadStage): void;
}

export interface LoadReport {
  signature: ModelSignature;
  /** The execution provider that really runs it. */
  provider: string;
  /** By how much the process grew meanwhile, 0 or more: an estimate, since freed memory is used again unseen. */
  memoryBytes: number;
  golden: GoldenReport;
  /** Loading, warming and verifying together, in milliseconds. */
  loadMs: number;
}

export interface ScaleReport {
  instances: number;
  /** By how much the process grew meanwhile, 0 or more. */
  memoryBytes: number;
}

export interface BatchOrder {
  modelId: string;
  batchId: string;
  units: BatchUnit[];
  workerId: string;
  /** Its items have begun to run before, in this attempt: their deadline to start was met. Default: no. */
  begun?: boolean;
  /** What a run of it is expected to take: an item that would be over too late is not run. Default: not known. */
  expectedRunMs?: number;
  /** Its one unit is a chunk of a bulk job: many runs, each of which lets others go before it. Default: no. */
  chunk?: boolean;
}

export interface BatchReport {
  /** In the order of the units. */
  outcomes: UnitOutcome[];
  fetchMs: number;
  /** Of all native runs together. */
  runMs: number;
  writeMs: number;
  /** Each native run, in the order they ended. */
  runs: { rows: number; seconds: number }[];
}

interface PendingBatch {
  timeoutMs: number;
  /** Native runs under way: their rows, and what cancels their time-out. */
  running: Map<number, { rows: number; cancel(): void }>;
  runs: BatchReport['runs'];
  resolve(report: BatchReport): void;
  reject(error: Error): void;
}

interface PendingCall {
  onStage?(stage: LoadStage): void;
  resolve(message: FromRunner): void;
  reject(error: Error): void;
}

/** A timer that is late may run before the message that it waits for is read; a moment more tells. */
const SECOND_LOOK_MS = 50;
/** Longest wait for the channel's last messages once the process is gone. */
const LAST_WORDS_MS = 1_000;

/**
 * Payloads are buffers outside the small heap. In a large young generation the dead ones pile up until a full
 * collection, which costs far more than they do; in a small one they go with the next scavenge. Helper threads of the
 * collector would take the cores from the model. Measured with 110 KB rows on 2 busy cores, CPU beside the model for
 * each row: 0.40 ms as Node comes, 0.32 ms without the helpers, 0.21 ms with both (the copy out of Redis included).
 */
const NODE_OPTIONS = ['--single-threaded-gc', '--max-semi-space-size=2'];

export class RunnerLife {
  readonly #options: RunnerLifeOptions;
  readonly #child: ChildProcess;
  readonly #batches = new Map<string, PendingBatch>();
  readonly #calls = new Map<number, PendingCall>();
  readonly ended: Promise<RunnerEnd>;
  #seq = 0;
  #answeredPing = 0;
  #sentPing = 0;
  #missed = 0;
  #rssBytes: number | null = null;
  #useful = false;
  #end: RunnerEnd | undefined;
  #killedFor: { reason: EndReason; batchId?: string } | undefined;
  #ready: PendingCall | undefined;
  #stopHeartbeat: () => void = () => {};

  constructor(options: RunnerLifeOptions) {
    this.#options = options;
    this.#child = fork(options.entry, {
      serialization: 'advanced',
      execArgv: NODE_OPTIONS,
      env: options.environment,
      // Nothing of the runner's own goes to stdout, which may be the worker's log.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child.on('message', (message) => this.#receive(message as FromRunner));
    // A message to a dying child fails; its end is told by `ended`, not by this.
    this.#child.on('error', (error) => options.log('warn', { error: error.message }, 'runner channel'));
    this.ended = this.#awaitEnd();
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  get rssBytes(): number | null {
    return this.#rssBytes;
  }

  /** True once it has begun a native run: then its death is not a failure to start. */
  get useful(): boolean {
    return this.#useful;
  }

  get batchesInFlight(): number {
    return this.#batches.size;
  }

  /** Resolves when the child serves. @throws Error when it dies first */
  begin(): Promise<void> {
    const { store, device, bulkShare } = this.#options;
    return new Promise<void>((resolve, reject) => {
      this.#ready = { resolve: () => resolve(), reject };
      this.#send({ type: 'init', store, device, bulkShare });
    }).then(() => this.#scheduleHeartbeat());
  }

  /**
   * @param verify whether the golden cases are run
   * @throws RemudaError as the runner gave it (model_load_failed, golden_mismatch); Error when the process dies meanwhile
   */
  async load(source: ModelSource, verify: boolean, { onStage }: LoadOptions = {}): Promise<LoadReport> {
    const make = (seq: number): ToRunner => ({ type: 'load', source, verify, seq });
    const reply = await this.#callForLoad(make, onStage);
    const { signature, provider, memoryBytes, golden, loadMs } = reply as Extract<
      FromRunner,
      { type: 'loaded' }
    >;
    return { signature, provider, memoryBytes, golden, loadMs };
  }

  /** @throws RemudaError as the runner gave it; Error when the process dies meanwhile */
  async scale(modelId: string, instances: number): Promise<ScaleReport> {
    const reply = await this.#callForLoad((seq) => ({ type: 'scale', modelId, instances, seq }));
    const scaled = reply as Extract<FromRunner, { type: 'scaled' }>;
    return { instances: scaled.instances, memoryBytes: scaled.memoryBytes };
  }

  /** @throws Error when the process dies meanwhile */
  async configure(modelId: string, maxBatchSize: number): Promise<void> {
    await this.#call((seq) => ({ type: 'configure', modelId, maxBatchSize, seq }));
  }

  async unload(modelId: string): Promise<void> {
    await this.#call((seq) => ({ type: 'unload', modelId, seq }));
  }

  /** @throws RunnerLostError when the process dies, RemudaError when the batch as a whole could not be worked on */
  run(order: BatchOrder, timeoutMs: number): Promise<BatchReport> {
    return new Promise((resolve, reject) => {
      if (this.#end) {
        const lost = { batchId: order.batchId, wasRunning: false, suspect: false, suspects: 0 };
        reject(new RunnerLostError(this.#end, lost));
        return;
      }
      this.#batches.set(order.batchId, { timeoutMs, running: new Map(), runs: [], resolve, reject });
      this.#send({ type: 'run', ...order });
    });
  }

  /** Asks it to finish and go; kills it after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#killedFor ??= { reason: 'stopped' };
    this.#send({ type: 'stop' });
    const cancel = this.#options.clock.after(graceMs, () => this.#child.kill('SIGKILL'));
    await this.ended;
    cancel();
  }

  kill(reason: EndReason, batchId?: string): void {
    this.#killedFor ??= { reason, batchId };
    this.#child.kill('SIGKILL');
  }

  #receive(message: FromRunner): void {
    switch (message.type) {
      case 'ready':
        this.#ready?.resolve(message);
        break;
      case 'load_stage':
        this.#calls.get(message.seq)?.onStage?.(message.stage);
        break;
      case 'loaded':
      case 'load_failed':
      case 'configured':
      case 'scaled':
      case 'unloaded':
        this.#calls.get(message.seq)?.resolve(message);
        this.#calls.delete(message.seq);
        break;
      case 'run_started':
        this.#runStarted(message);
        break;
      case 'run_ended':
        this.#runEnded(message);
        break;
      case 'batch_done':
        this.#batchDone(message);
        break;
      case 'batch_failed':
        this.#batchFailed(message);
        break;
      case 'pong':
        this.#answeredPing = message.seq;
        this.#rssBytes = message.rssBytes;
        break;
      case 'log':
        this.#options.log(message.level, { runner_pid: this.pid, ...message.fields }, message.message);
    }
  }

  #runStarted({ batchId, run, rows }: Extract<FromRunner, { type: 'run_started' }>): void {
    this.#useful = true;
    const batch = this.#batches.get(batchId);
    if (!batch) return;
    const { clock } = this.#options;
    let cancel = clock.after(batch.timeoutMs, () => {
      cancel = clock.after(SECOND_LOOK_MS, () => this.kill('timed_out', batchId));
    });
    batch.running.set(run, { rows, cancel: () => cancel() });
  }

  #runEnded({ batchId, run, seconds }: Extract<FromRunner, { type: 'run_ended' }>): void {
    const batch = this.#batches.get(batchId);
    const running = batch?.running.get(run);
    if (!batch || !running) return;
    running.cancel();
    batch.running.delete(run);
    batch.runs.push({ rows: running.rows, seconds });
  }

  #batchDone(message: Extract<FromRunner, { type: 'batch_done' }>): void {
    const { batchId, outcomes, fetchMs, runMs, writeMs } = message;
    const batch = this.#batches.get(batchId);
    this.#batches.delete(batchId);
    batch?.resolve({ outcomes, fetchMs, runMs, writeMs, runs: batch.runs });
  }

  #batchFailed({ batchId, error }: Extract<FromRunner, { type: 'batch_failed' }>): void {
    const batch = this.#batches.get(batchId);
    this.#batches.delete(batchId);
    batch?.reject(new RemudaError(error.code, error.message, error.details));
  }

  /** A call that loads something: it has a time limit, and may be refused. */
  async #callForLoad(make: (seq: number) => ToRunner, onStage?: LoadOptions['onStage']): Promise<FromRunner> {
    const { clock, loadTimeoutMs } = this.#options;
    const cancel = clock.after(loadTimeoutMs, () => this.kill('timed_out'));
    try {
      const reply = await this.#call(make, onStage);
      if (reply.type !== 'load_failed') return reply;
      const { code, message, details } = reply.error;
      throw code === 'model_load_failed'
        ? new ModelLoadError(message, details)
        : new RemudaError(code, message, details);
    } finally {
      cancel();
    }
  }

  #call(make: (seq: number) => ToRunner, onStage?: LoadOptions['onStage']): Promise<FromRunner> {
    return new Promise((resolve, reject) => {
      if (this.#end) {
        reject(new Error('the runner is gone'));
        return;
      }
      const seq = ++this.#seq;
      this.#calls.set(seq, { resolve, reject, onStage });
      this.#send(make(seq));
    });
  }

  #send(message: ToRunner): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  #scheduleHeartbeat(): void {
    const { clock, heartbeatMs, missedHeartbeats } = this.#options;
    this.#stopHeartbeat = clock.after(heartbeatMs, () => {
      this.#missed = this.#answeredPing === this.#sentPing ? 0 : this.#missed + 1;
      if (this.#missed >= missedHeartbeats) {
        this.kill('hung');
        return;
      }
      // While one is unanswered no other is sent: the answer to the first is what is waited for.
      if (this.#missed === 0) this.#send({ type: 'ping', seq: ++this.#sentPing });
      this.#scheduleHeartbeat();
    });
  }

  /** The process is gone and its channel is read to the end: run_started may be its last word. */
  async #awaitEnd(): Promise<RunnerEnd> {
    const drained = new Promise<void>((resolve) => this.#child.once('disconnect', () => resolve()));
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
      this.#child.once('exit', (exitCode, exitSignal) => resolve([exitCode, exitSignal]));
      this.#child.once('error', () => {
        if (this.#child.pid === undefined) resolve([null, null]);
      });
    });
    let cancel: () => void = () => {};
    await Promise.race([
      drained,
      new Promise<void>((resolve) => {
        cancel = this.#options.clock.after(LAST_WORDS_MS, resolve);
      }),
    ]);
    cancel();
    const end: RunnerEnd = { reason: this.#killedFor?.reason ?? 'crashed', signal, code, pid: this.pid };
    this.#bury(end);
    return end;
  }

  #bury(end: RunnerEnd): void {
    this.#end = end;
    this.#stopHeartbeat();
    this.#options.onEnd(this, end);
    const gone = new Error(`the runner ${endText(end)}`);
    this.#ready?.reject(gone);
    for (const call of this.#calls.values()) call.reject(gone);
    this.#calls.clear();
    const inside = [...this.#batches].map(([batchId, { running }]) => ({
      batchId,
      running: running.size > 0,
    }));
    for (const lost of assignSuspicion(inside, end, this.#killedFor?.batchId)) {
      const batch = this.#batches.get(lost.batchId) as PendingBatch;
      for (const { cancel } of batch.running.values()) cancel();
      batch.reject(new RunnerLostError(end, lost, rowsOf(batch)));
    }
    this.#batches.clear();
  }
}

function rowsOf({ running, runs }: PendingBatch): LostRows {
  const sum = (some: Iterable<{ rows: number }>): number =>
    [...some].reduce((all, { rows }) => all + rows, 0);
  return { done: sum(runs), running: sum(running.values()) };
}
