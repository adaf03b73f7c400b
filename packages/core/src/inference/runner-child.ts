/**
 * The runner: the child process that owns the native sessions of one device. It may crash, the worker may not; it
 * lives exactly as long as its parent wants it. What it does is told by messages (runner-protocol.ts); what happens to
 * a batch stands in batch-flow.ts. The process entry is runner-entry.ts.
 */
import { type ChunkTools, flowChunk } from '../bulk/run-chunk.js';
import { itemError, ModelNotLoadedError, toItemError } from '../errors.js';
import { type FlowContext, flowBatch, type RunMessage } from './batch-flow.js';
import { BufferPool } from './buffer-pool.js';
import { InstanceThreads } from './instance-threads.js';
import { type LoadedModel, loadModel, setMaxBatchSize } from './loaded-model.js';
import type { FromRunner, StoreAddress, ToRunner } from './runner-protocol.js';
import type { RunnerStore } from './runner-store.js';

export interface OpenStore {
  store: RunnerStore;
  close(): void;
}

export interface StoreNeeds {
  /** Where inputs may be put; the claim that holds one says so, and the batch gives it back. */
  memory: BufferPool;
  /** Told of connection errors. */
  log(message: string): void;
}

/** Opens the store that the init message names. */
export type StoreOpener = (address: StoreAddress, needs: StoreNeeds) => Promise<OpenStore>;

interface ServedModel extends LoadedModel {
  flows: Set<Promise<void>>;
}

/** Serves the parent of this process until it says stop, or is gone. @param openChunks asked once, at the first chunk */
export function serveRunner(openStore: StoreOpener, openChunks?: () => ChunkTools): void {
  new RunnerChild(openStore, openChunks).listen();
}

class RunnerChild {
  readonly #openStore: StoreOpener;
  readonly #openChunks: (() => ChunkTools) | undefined;
  #chunks: ChunkTools | undefined;
  #bulkShare: number | undefined;
  readonly #models = new Map<string, ServedModel>();
  readonly #buffers = new BufferPool();
  readonly #threads = new InstanceThreads();
  #store: OpenStore | undefined;
  #device = 'cpu';

  constructor(openStore: StoreOpener, openChunks: (() => ChunkTools) | undefined) {
    this.#openStore = openStore;
    this.#openChunks = openChunks;
  }

  listen(): void {
    process.title = 'remuda-runner';
    // Ctrl-C reaches the whole process group; when to stop is for the parent to say, once its batches are done.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
    // SIGKILL, since process.exit waits for threads, and a native run can last for ever.
    process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
    process.on('message', (message: ToRunner) => void this.#handle(message));
  }

  async #handle(message: ToRunner): Promise<void> {
    switch (message.type) {
      case 'init':
        return this.#init(message);
      case 'load':
        return this.#load(message);
      case 'configure':
        return this.#configure(message);
      case 'scale':
        return this.#scale(message);
      case 'unload':
        await this.#unload(message.modelId);
        return this.#send({ type: 'unloaded', seq: message.seq });
      case 'run':
        return this.#run(message);
      case 'ping':
        return this.#send({ type: 'pong', seq: message.seq, rssBytes: process.memoryUsage.rss() });
      case 'stop':
        return this.#stop();
    }
  }

  async #init({ store, device, bulkShare }: Extract<ToRunner, { type: 'init' }>): Promise<void> {
    this.#device = device;
    this.#bulkShare = bulkShare;
    this.#store = await this.#openStore(store, {
      memory: this.#buffers,
      log: (message) => this.#log('warn', { component: 'store' }, message),
    });
    this.#send({ type: 'ready', pid: process.pid });
  }

  /** Beside the version that is there; that one serves until the new one is verified, and then finishes what it has. */
  async #load({ source, verify, seq }: Extract<ToRunner, { type: 'load' }>): Promise<void> {
    try {
      const grown = growthOfMemory();
      const begun = performance.now();
      const { model, golden } = await loadModel(source, {
        buffers: this.#buffers,
        threads: this.#threads,
        bulkShare: this.#bulkShare,
        verify,
        onFatal: (error) => this.#die(error),
        onStage: (stage) => this.#send({ type: 'load_stage', seq, stage }),
      });
      const replaced = this.#models.get(source.modelId);
      this.#models.set(source.modelId, { ...model, flows: new Set() });
      const { signature, provider } = model;
      const loadMs = performance.now() - begun;
      this.#send({ type: 'loaded', seq, signature, provider, golden, loadMs, memoryBytes: grown() });
      this.#threads.fillLater();
      if (replaced) await release(replaced);
    } catch (error) {
      this.#send({ type: 'load_failed', seq, error: toItemError(error, 'model_load_failed') });
    }
  }

  #configure({ modelId, maxBatchSize, seq }: Extract<ToRunner, { type: 'configure' }>): void {
    const model = this.#models.get(modelId);
    if (model) setMaxBatchSize(model, maxBatchSize);
    this.#send({ type: 'configured', seq });
  }

  async #scale({ modelId, instances, seq }: Extract<ToRunner, { type: 'scale' }>): Promise<void> {
    try {
      const model = this.#models.get(modelId);
      if (!model) throw new ModelNotLoadedError(modelId);
      const grown = growthOfMemory();
      await model.instances.scale(instances);
      this.#send({ type: 'scaled', seq, instances: model.instances.size, memoryBytes: grown() });
    } catch (error) {
      this.#send({ type: 'load_failed', seq, error: toItemError(error, 'model_load_failed') });
    }
  }

  async #unload(modelId: string): Promise<void> {
    const model = this.#models.get(modelId);
    this.#models.delete(modelId);
    if (model) await release(model);
  }

  async #run(message: RunMessage): Promise<void> {
    const model = this.#models.get(message.modelId);
    const flow = this.#flow(message, model);
    model?.flows.add(flow);
    await flow;
    model?.flows.delete(flow);
  }

  async #flow(message: RunMessage, model: ServedModel | undefined): Promise<void> {
    const { batchId, modelId } = message;
    try {
      if (!model) throw new ModelNotLoadedError(modelId);
      if (message.chunk) await flowChunk(message, model, { ...this.#context(), chunks: this.#chunkTools() });
      else await flowBatch(message, model, this.#context());
    } catch (error) {
      this.#send({ type: 'batch_failed', batchId, error: toItemError(error, 'store_unavailable') });
    }
  }

  #context(): FlowContext {
    if (!this.#store) throw new Error('a batch came before init');
    return {
      store: this.#store.store,
      buffers: this.#buffers,
      device: this.#device,
      send: (message) => this.#send(message),
    };
  }

  #chunkTools(): ChunkTools {
    this.#chunks ??= this.#openChunks?.();
    if (!this.#chunks) throw new Error('this runner takes no chunks');
    return this.#chunks;
  }

  async #stop(): Promise<void> {
    await Promise.all([...this.#models.keys()].map((modelId) => this.#unload(modelId)));
    this.#store?.close();
    // Messages leave in order: once this one is out, so are the answers before it.
    const last: FromRunner = { type: 'log', level: 'debug', fields: {}, message: 'runner stopped' };
    process.send?.(last, undefined, undefined, () => process.exit(0));
  }

  /** A thread is gone and what it held with it: better a new process, which the parent starts at once. */
  #die(error: Error): void {
    const fields = { error: itemError('internal', error.message) };
    const message: FromRunner = { type: 'log', level: 'error', fields, message: 'an instance thread died' };
    process.send?.(message, undefined, undefined, () => process.kill(process.pid, 'SIGKILL'));
  }

  #log(level: 'warn' | 'error', fields: Record<string, unknown>, message: string): void {
    this.#send({ type: 'log', level, fields, message });
  }

  #send(message: FromRunner): void {
    if (process.connected) process.send?.(message);
  }
}

async function release(model: ServedModel): Promise<void> {
  await Promise.all(model.flows);
  await model.instances.unload();
}

/** Call it, do the work, call what it returned: by how much the process grew meanwhile, 0 where it did not. */
function growthOfMemory(): () => number {
  const before = process.memoryUsage.rss();
  return () => Math.max(0, process.memoryUsage.rss() - before);
}
