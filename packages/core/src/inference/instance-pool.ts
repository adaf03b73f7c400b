/**
 * All instances of one loaded model, seen from the runner's main thread: runs wait in two lines (chunks of bulk jobs let
 * all else go first, but for their share) and go to whichever instance is idle. Only the first of a line is assembled ahead, so that it is ready the moment a run ends: more would
 * hold memory, and leave the caches before their turn comes. A batch is handed to an instance only
 * when that is idle: "started" then means started, which the worker's run time-out relies on.
 */
import type { Worker } from 'node:worker_threads';
import type { ItemError, RawTensor } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { BULK, BULK_SHARE, INTERACTIVE, type LaneRank, LaneShare } from '../fairness/lane-share.js';
import type { ModelSource, ModelTensors, RunContext } from '../harness/harness.js';
import { isOwnKind } from '../harness/registry.js';
import type { AssembledBatch } from './batch-assembly.js';
import type { BufferPool } from './buffer-pool.js';
import type { FromInstance, ToInstance } from './instance-messages.js';
import type { InstanceThreads } from './instance-threads.js';

export type RunAnswer =
  | { ok: true; outputs: RawTensor[]; seconds: number }
  | { ok: false; error: ItemError; seconds: number };

export interface InstancePoolOptions {
  source: ModelSource;
  buffers: BufferPool;
  threads: InstanceThreads;
  /** Least share of the rows that runs of chunks get while others wait, too. Default: BULK_SHARE. */
  bulkShare?: number | undefined;
  /** A thread died by itself: the process cannot be trusted any more. */
  onFatal(error: Error): void;
}

interface Waiting {
  lane: LaneRank;
  make(): AssembledBatch | undefined;
  batch: AssembledBatch | undefined;
  context: RunContext;
  started(rows: number): void;
  settle(answer: RunAnswer | undefined): void;
  fail(error: unknown): void;
}

interface Instance {
  thread: Worker;
  running: Waiting | undefined;
  /** The answer to load, warm or unload that is awaited. */
  awaiting: ((message: FromInstance) => void) | undefined;
  /** Called when its run has ended, where it is to leave. */
  whenDone: (() => void) | undefined;
  /** Its end is ours. */
  closing: boolean;
}

type Loaded = Extract<FromInstance, { type: 'loaded' }>;

export class InstancePool {
  readonly #options: InstancePoolOptions;
  /** Loaded and warm: those that batches are handed to. */
  readonly #instances: Instance[] = [];
  /** By lane. */
  readonly #lines: readonly [Waiting[], Waiting[]] = [[], []];
  readonly #lanes: LaneShare;
  #closing = false;
  #whenIdle: (() => void) | undefined;

  constructor(options: InstancePoolOptions) {
    this.#options = options;
    this.#lanes = new LaneShare(options.bulkShare ?? BULK_SHARE);
  }

  /** Instances that take batches. */
  get size(): number {
    return this.#instances.length;
  }

  /**
   * Loads every instance, then warms every one.
   * @param onWarming called between the two
   * @throws RemudaError as the harness gave it; nothing is left behind
   */
  async load(onWarming: () => void = () => {}): Promise<{ tensors: ModelTensors; provider: string }> {
    const opened: Instance[] = [];
    try {
      // The first alone: a model that cannot be loaded fails once, and its file is in the page cache for the others.
      const first = await this.#loadInto(opened);
      const others = Array.from({ length: this.#options.source.config.instances - 1 }, () =>
        this.#loadInto(opened),
      );
      await allOf(others);
      onWarming();
      await allOf(opened.map((instance) => this.#warm(instance)));
      this.#instances.push(...opened);
      return first;
    } catch (error) {
      await Promise.all(opened.map((instance) => this.#close(instance)));
      throw error;
    }
  }

  /**
   * Changes the number of instances while batches run: new ones take batches when they are warm, those that leave
   * finish what they run. One call at a time.
   * @throws RemudaError as the harness gave it; then the number is what it was
   */
  async scale(instances: number): Promise<void> {
    const missing = instances - this.#instances.length;
    if (missing > 0) await this.#grow(missing);
    if (missing < 0) await this.#shrink(-missing);
  }

  /**
   * Runs a batch when an instance is idle. The batch's buffers go back to the pool whatever happens.
   * @param make called when its turn is near, and again where its goodUntil passes before that comes; undefined: nothing
   *   is left to run, and so is the answer
   * @param lane BULK: runs of the other lane go before it, but for its least share
   * @throws what `make` throws
   */
  run(
    make: () => AssembledBatch | undefined,
    context: RunContext,
    started: (rows: number) => void,
    lane: LaneRank = INTERACTIVE,
  ): Promise<RunAnswer | undefined> {
    return new Promise((settle, fail) => {
      this.#lines[lane].push({ lane, make, batch: undefined, context, started, settle, fail });
      this.#dispatch();
    });
  }

  /** Finishes what runs and what waits, releases the sessions and ends the threads. */
  async unload(): Promise<void> {
    this.#closing = true;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      this.#checkIdle();
    });
    await Promise.all(this.#instances.splice(0).map((instance) => this.#close(instance)));
  }

  async #grow(count: number): Promise<void> {
    const opened: Instance[] = [];
    try {
      await allOf(Array.from({ length: count }, () => this.#loadInto(opened)));
      await allOf(opened.map((instance) => this.#warm(instance)));
      if (this.#closing) throw new RemudaError('shutting_down', 'the model was unloaded meanwhile');
      this.#instances.push(...opened);
      this.#dispatch();
    } catch (error) {
      await Promise.all(opened.map((instance) => this.#close(instance)));
      throw error;
    }
  }

  /** Idle ones go first. */
  async #shrink(count: number): Promise<void> {
    const leaving = [...this.#instances]
      .sort((a, b) => Number(!!a.running) - Number(!!b.running))
      .slice(0, count);
    for (const instance of leaving) this.#instances.splice(this.#instances.indexOf(instance), 1);
    await Promise.all(
      leaving.map(async (instance) => {
        if (instance.running) {
          await new Promise<void>((resolve) => {
            instance.whenDone = resolve;
          });
        }
        await this.#close(instance);
      }),
    );
  }

  /** Starts a thread, enters it in `opened` and loads the model into it. */
  async #loadInto(opened: Instance[]): Promise<Loaded> {
    const instance = this.#startThread();
    opened.push(instance);
    return loadedOf(await this.#ask(instance, { type: 'load', source: this.#options.source })) as Loaded;
  }

  async #warm(instance: Instance): Promise<void> {
    loadedOf(await this.#ask(instance, { type: 'warm' }));
  }

  #startThread(): Instance {
    const thread = this.#options.threads.take();
    const instance: Instance = {
      thread,
      running: undefined,
      awaiting: undefined,
      whenDone: undefined,
      closing: false,
    };
    thread.on('message', (message: FromInstance) => this.#receive(instance, message));
    thread.on('error', (error) => this.#options.onFatal(error as Error));
    thread.on('exit', (code) => {
      if (!instance.closing) this.#options.onFatal(new Error(`an instance thread ended with code ${code}`));
    });
    return instance;
  }

  async #close(instance: Instance): Promise<void> {
    await this.#ask(instance, { type: 'unload' });
    instance.closing = true;
    const { source, threads } = this.#options;
    // What a harness of the user's own has left behind in its thread is not known.
    if (isOwnKind(source.config.harness)) await instance.thread.terminate();
    else await threads.giveBack(instance.thread);
  }

  #ask(instance: Instance, message: ToInstance): Promise<FromInstance> {
    return new Promise((resolve) => {
      instance.awaiting = resolve;
      instance.thread.postMessage(message);
    });
  }

  #receive(instance: Instance, message: FromInstance): void {
    if (message.type === 'ran' || message.type === 'run_failed') this.#finish(instance, message);
    else {
      const { awaiting } = instance;
      instance.awaiting = undefined;
      awaiting?.(message);
    }
  }

  #finish(instance: Instance, message: Extract<FromInstance, { type: 'ran' | 'run_failed' }>): void {
    const { settle } = instance.running as Waiting;
    instance.running = undefined;
    for (const buffer of message.buffers) this.#options.buffers.release(buffer);
    instance.whenDone?.();
    // The next run starts before the answer of this one is worked on.
    this.#dispatch();
    if (message.type === 'ran') settle({ ok: true, outputs: message.outputs, seconds: message.seconds });
    else settle({ ok: false, error: message.error, seconds: message.seconds });
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (
      this.#lines.every((line) => line.length === 0) &&
      this.#instances.every((instance) => !instance.running)
    )
      this.#whenIdle?.();
  }

  /** Assembled; what turns out to have nothing to run leaves the line. */
  #firstOf(line: Waiting[]): Waiting | undefined {
    for (let first = line[0]; first; first = line[0]) {
      if (isAssembled(first)) return first;
      line.shift();
    }
    return undefined;
  }

  /** The run whose turn it is, of the lane whose turn it is. */
  #firstInLine(): Waiting | undefined {
    const [interactive, bulk] = this.#lines.map((line) => this.#firstOf(line));
    return this.#lanes.next([interactive !== undefined, bulk !== undefined]) === BULK ? bulk : interactive;
  }

  /** Something of it may not begin any more: it is made anew, without that. */
  #isOutdated(waiting: Waiting): boolean {
    const { goodUntil = Number.POSITIVE_INFINITY, buffers = [] } = waiting.batch ?? {};
    if (performance.now() < goodUntil) return false;
    for (const buffer of buffers) this.#options.buffers.release(buffer);
    waiting.batch = undefined;
    return true;
  }

  #dispatch(): void {
    for (let next = this.#firstInLine(); next?.batch; next = this.#firstInLine()) {
      const idle = this.#instances.find((instance) => !instance.running);
      if (!idle) return;
      if (this.#isOutdated(next)) continue;
      const contended = this.#lines.every((line) => line.length > 0);
      this.#lines[next.lane].shift();
      idle.running = next;
      const { rows, inputs, buffers } = next.batch;
      this.#lanes.closed(next.lane, next.lane === BULK ? [0, rows] : [rows, 0], contended, rows);
      next.started(rows);
      const { batchId, parameters } = next.context;
      const message: ToInstance = { type: 'run', rows, inputs, buffers, batchId, parameters };
      idle.thread.postMessage(message, buffers);
    }
  }
}

/** Whether there is something to run now. */
function isAssembled(waiting: Waiting): boolean {
  if (waiting.batch) return true;
  try {
    waiting.batch = waiting.make();
    if (!waiting.batch) waiting.settle(undefined);
  } catch (error) {
    waiting.fail(error);
  }
  return waiting.batch !== undefined;
}

/** All have ended when it settles. @throws what the first that failed was rejected with */
async function allOf(steps: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(steps)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/** @throws RemudaError when the answer is load_failed */
function loadedOf(reply: FromInstance): FromInstance {
  if (reply.type !== 'load_failed') return reply;
  const { code, message, details } = reply.error;
  throw new RemudaError(code, message, details);
}
