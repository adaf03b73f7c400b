/**
 * What of a version is in the runner of its device, and the steps that change it: load, load again beside what serves,
 * apply settings, unload. Each step is done wholly or throws, with what served before still serving. When a step is due
 * is decided by version-slot.ts.
 */
import type { ModelSource } from '@remuda/core/harness/harness';
import type { LoadReport } from '@remuda/core/inference/runner-process';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { configChange } from '@remuda/core/models/effective-config';
import type { Logger } from '@remuda/core/observability/logger';
import type { ModelSignature } from '@remuda/schemas';
import type { HostedDevice } from './hosted-device.js';
import type { Leases } from './leases.js';
import { checkBeforeLoad, checkFleet, type LoadCheckDeps } from './load-checks.js';
import type { ServedModel } from './served-model.js';
import type { SlotAim } from './slot-aim.js';
import type { SlotMemory } from './slot-memory.js';
import type { SlotReport } from './slot-report.js';

export interface HeldVersionDeps extends LoadCheckDeps {
  clock: Clock;
  logger: Logger;
  /** On unloading, how long jobs that are in it may take, in milliseconds. */
  drainMs: number;
  serve(source: ModelSource, signature: ModelSignature, device: HostedDevice): ServedModel;
  /** Tells the fleet what it takes and gives, and how it is configured. */
  publish(signature: ModelSignature, source: ModelSource): Promise<void>;
  /** Resolves when the fleet has been told of the present states. */
  announce(): Promise<void>;
}

export interface HeldVersionOptions {
  deps: HeldVersionDeps;
  device: HostedDevice;
  memory: SlotMemory;
  leases: Leases;
  report: SlotReport;
  /** Sees to it that bytes are free on the device, and books them. False: only a request would get them. */
  makeRoom(bytes: number, byRequest: boolean): Promise<boolean>;
  /** Settings show in what is reported, though no state changes. */
  onSettingsApplied(): void;
}

export class HeldVersion {
  readonly #options: HeldVersionOptions;
  #served: ServedModel | undefined;

  constructor(options: HeldVersionOptions) {
    this.#options = options;
  }

  get served(): ServedModel | undefined {
    return this.#served;
  }

  /** It is gone from the runner. */
  forget(): void {
    this.#served = undefined;
    this.#options.memory.booked = 0;
  }

  /** False: there is no room for it now, and no request asks for it. @throws RemudaError */
  async load(aim: SlotAim, stamp: string, byRequest: boolean): Promise<boolean> {
    const { deps, device, memory, report } = this.#options;
    const source = aim.source as ModelSource;
    report.set({ state: 'loading', reason: null, digest: source.digest, provider: '' });
    try {
      const bytes = await memory.needed(stamp, source);
      if (!(await this.#options.makeRoom(bytes, byRequest))) return this.#noRoom();
      // Of two workers with different files that load at the same time, each must see the other.
      await deps.announce();
      await checkBeforeLoad(source, aim, device, deps);
      const loaded = await device.runner.load(source, { onStage: (stage) => report.set({ state: stage }) });
      memory.measured(stamp, loaded.memoryBytes, bytes);
      if (!(await this.#mayServe(source, byRequest))) return this.#noRoom();
      await this.#serve(source, loaded);
      return true;
    } catch (error) {
      memory.booked = 0;
      throw error;
    }
  }

  /** The new one is loaded beside what serves, which the runner replaces when the new one is ready. */
  async reload(source: ModelSource, aim: SlotAim): Promise<void> {
    const { deps, device, report } = this.#options;
    const served = this.#served as ServedModel;
    await checkBeforeLoad(source, aim, device, deps);
    const changed = whatChanged(served.source, source);
    const loaded = await device.runner.load(source, {
      onStage: (stage) => report.set({ reason: `${changed} changed; beside what serves: ${stage}` }),
    });
    await deps.publish(loaded.signature, source);
    served.reconfigure(source, loaded.signature);
    report.set({ reason: null, digest: source.digest, provider: loaded.provider });
    this.#log({ changed }, 'model loaded again beside what served');
  }

  /** Settings that apply to what is loaded, and the number of its sessions. */
  async change(source: ModelSource): Promise<void> {
    const { deps, device, report, onSettingsApplied } = this.#options;
    const served = this.#served as ServedModel;
    const { instances, max_batch_size: maxBatchSize, timeout_ms: timeoutMs } = source.config;
    const more = instances - served.source.config.instances;
    await device.runner.configure(source.modelId, { maxBatchSize, timeoutMs });
    // Never more batches than sessions: grown before it is told of, shrunk after.
    if (more > 0) await this.#scale(source.modelId, instances);
    served.reconfigure(source);
    if (more < 0) await this.#scale(source.modelId, instances);
    report.set({ reason: null });
    onSettingsApplied();
    await deps.publish(served.signature, source);
    this.#log({ instances, max_batch_size: maxBatchSize }, 'settings applied');
  }

  async unload(reason: string): Promise<void> {
    const { deps, device, leases, report } = this.#options;
    const served = this.#served as ServedModel;
    report.set({ state: 'draining', reason });
    await leases.free(deps.drainMs);
    // What is still in it after that is handed back to the queue.
    await served.drain();
    await device.runner.unload(served.source.modelId);
    this.forget();
    report.set({ state: 'unloaded', reason, provider: '', memory_bytes: null });
    this.#log({ reason }, 'model unloaded', served.source);
  }

  /** Another worker may serve other files by now, and it may take more memory than its file let expect. */
  async #mayServe(source: ModelSource, byRequest: boolean): Promise<boolean> {
    const { deps, device, memory, makeRoom } = this.#options;
    let fits = false;
    try {
      await checkFleet(source, deps);
      fits = await makeRoom(memory.booked, byRequest);
      return fits;
    } finally {
      if (!fits) await device.runner.unload(source.modelId);
    }
  }

  async #serve(source: ModelSource, { signature, provider, memoryBytes }: LoadReport): Promise<void> {
    const { deps, device, leases, report } = this.#options;
    await deps.publish(signature, source);
    this.#served = deps.serve(source, signature, device);
    leases.touch();
    report.set({ state: 'ready', reason: null, provider, memory_bytes: memoryBytes });
    this.#log({ provider }, 'model ready');
    await deps.announce();
  }

  #noRoom(): false {
    const { memory, report } = this.#options;
    memory.booked = 0;
    report.set({ state: 'unloaded', reason: 'no room at present; the first request loads it' });
    return false;
  }

  async #scale(modelId: string, instances: number): Promise<void> {
    const { memoryBytes } = await this.#options.device.runner.scale(modelId, instances);
    this.#options.memory.booked += memoryBytes;
  }

  #log(fields: Record<string, unknown>, message: string, source = this.#served?.source): void {
    const { model, version, device } = source as ModelSource;
    this.#options.deps.logger.info({ model, version, device, ...fields }, message);
  }
}

function whatChanged(before: ModelSource, after: ModelSource): string {
  const change = configChange(before.config, after.config);
  return change.kind === 'reload' ? change.because.join(', ') : 'files';
}
