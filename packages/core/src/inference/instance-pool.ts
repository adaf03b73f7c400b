/**
 * All instances of one loaded model, seen from the runner's main thread: assembled batches wait in one line and go to
 * whichever instance is idle, so that the next is ready the moment a run ends. A batch is handed to an instance only
 * when that is idle: "started" then means started, which the worker's run time-out relies on.
 */
import { Worker } from 'node:worker_threads';
import type { ItemError, RawTensor } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { ModelSource, ModelTensors, RunContext } from '../harness/harness.js';
import type { AssembledBatch } from './batch-assembly.js';
import type { BufferPool } from './buffer-pool.js';
import { builtFile } from './built-file.js';
import type { FromInstance, ToInstance } from './instance-messages.js';

export type RunAnswer =
  | { ok: true; outputs: RawTensor[]; seconds: number }
  | { ok: false; error: ItemError; seconds: number };

export interface InstancePoolOptions {
  source: ModelSource;
  buffers: BufferPool;
  /** A thread died by itself: the process cannot be trusted any more. */
  onFatal(error: Error): void;
}

interface Waiting {
  batch: AssembledBatch;
  context: RunContext;
  started(): void;
  settle(answer: RunAnswer): void;
}

interface Instance {
  thread: Worker;
  running: Waiting | undefined;
  /** The answer to load or unload that is awaited. */
  awaiting: ((message: FromInstance) => void) | undefined;
}

export class InstancePool {
  readonly #options: InstancePoolOptions;
  readonly #instances: Instance[] = [];
  readonly #line: Waiting[] = [];
  #closing = false;
  #whenIdle: (() => void) | undefined;

  constructor(options: InstancePoolOptions) {
    this.#options = options;
  }

  /** Loads and warms every instance. @throws RemudaError as the harness gave it; nothing is left behind */
  async load(): Promise<{ tensors: ModelTensors; provider: string }> {
    const { source } = this.#options;
    try {
      // The first alone: a model that cannot be loaded fails once, and its file is in the page cache for the others.
      const first = await this.#addInstance();
      const others = Array.from({ length: source.config.instances - 1 }, () => this.#addInstance());
      const failed = (await Promise.allSettled(others)).find((result) => result.status === 'rejected');
      if (failed) throw failed.reason;
      return first;
    } catch (error) {
      await this.unload();
      throw error;
    }
  }

  /** Runs a batch when an instance is idle. The batch's buffers go back to the pool whatever happens. */
  run(batch: AssembledBatch, context: RunContext, started: () => void): Promise<RunAnswer> {
    return new Promise((settle) => {
      this.#line.push({ batch, context, started, settle });
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
    await Promise.all(
      this.#instances.splice(0).map(async (instance) => {
        await this.#ask(instance, { type: 'unload' });
        await instance.thread.terminate();
      }),
    );
  }

  async #addInstance(): Promise<{ tensors: ModelTensors; provider: string }> {
    const thread = new Worker(builtFile('./instance-thread.js', import.meta.url), {
      name: 'remuda-instance',
    });
    const instance: Instance = { thread, running: undefined, awaiting: undefined };
    thread.on('message', (message: FromInstance) => this.#receive(instance, message));
    thread.on('error', (error) => this.#options.onFatal(error as Error));
    thread.on('exit', (code) => {
      if (!this.#closing) this.#options.onFatal(new Error(`an instance thread ended with code ${code}`));
    });
    this.#instances.push(instance);
    const reply = await this.#ask(instance, { type: 'load', source: this.#options.source });
    if (reply.type === 'loaded') return reply;
    const { code, message, details } = (reply as Extract<FromInstance, { type: 'load_failed' }>).error;
    throw new RemudaError(code, message, details);
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
    // The next run starts before the answer of this one is worked on.
    this.#dispatch();
    if (message.type === 'ran') settle({ ok: true, outputs: message.outputs, seconds: message.seconds });
    else settle({ ok: false, error: message.error, seconds: message.seconds });
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#line.length === 0 && this.#instances.every((instance) => !instance.running)) this.#whenIdle?.();
  }

  #dispatch(): void {
    while (this.#line.length > 0) {
      const idle = this.#instances.find((instance) => !instance.running);
      if (!idle) return;
      const next = this.#line.shift() as Waiting;
      idle.running = next;
      next.started();
      const { rows, inputs, buffers } = next.batch;
      const { batchId, parameters } = next.context;
      const message: ToInstance = { type: 'run', rows, inputs, buffers, batchId, parameters };
      idle.thread.postMessage(message, buffers);
    }
  }
}
