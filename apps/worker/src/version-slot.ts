/**
 * One version on one device of this worker, from loading to unloaded. One thing happens to it at a time; what is wanted
 * meanwhile is looked at afterwards. A failure leaves what serves as it is.
 *
 *   loading → warming → verifying → ready → draining → unloaded, or failed
 *
 * Jobs hold a lease on it while they run; it is not taken from under them.
 */
import { join } from 'node:path';
import { RemudaError } from '@remuda/core/errors';
import type { ModelSource } from '@remuda/core/harness/harness';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { digestConflict, wrongDigest } from '@remuda/core/models/digest-conflict';
import { configChange } from '@remuda/core/models/effective-config';
import type { PlannedVersion } from '@remuda/core/models/version-plan';
import type { Logger } from '@remuda/core/observability/logger';
import { stableJson } from '@remuda/core/repository/version-digest';
import type { AffinityRule, LoadedModel, ModelSignature, WorkerHeartbeat } from '@remuda/schemas';
import { estimateBytes } from './estimate-bytes.js';
import type { HostedDevice } from './hosted-device.js';
import { isBlocked, type LoadFailure, loadFailure, PassingLoadError } from './load-failure.js';
import type { ServedModel } from './served-model.js';
import { nextStep, type SlotStep } from './slot-step.js';

/** What a slot needs of the worker around it. */
export interface SlotDeps {
  workerId: string;
  clock: Clock;
  logger: Logger;
  /** A version outside the policy goes after being unused that long, in milliseconds. */
  idleMs: number;
  /** On unloading, how long jobs that are in it may take, in milliseconds. */
  drainMs: number;
  serve(source: ModelSource, signature: ModelSignature, device: HostedDevice): ServedModel;
  publish(signature: ModelSignature, source: ModelSource): Promise<void>;
  /** Resolves when the fleet has been told of the present states. */
  announce(): Promise<void>;
  /** The fleet, as of now. */
  fleet(): Promise<readonly WorkerHeartbeat[]>;
  /** @throws RemudaError where a rule of the model keeps it off the device now */
  checkRule(rule: AffinityRule, device: HostedDevice): Promise<void>;
  /** From now on a failure is the stop's. */
  isStopping(): boolean;
  /** A state has changed. */
  onChange(slot: VersionSlot): void;
  /** Something has ended: what is wanted now may differ. */
  onSettled(): void;
}

export interface SlotAim {
  want: PlannedVersion['want'];
  /** Why. */
  reason: string;
  /** What is to be loaded, with the settings that are wanted; null: its files are gone or faulty. */
  source: ModelSource | null;
  /** The rule of the model that places it here; null: none does. */
  rule: AffinityRule | null;
  /** Why there is no source. */
  problem: string | null;
  /** Digest that was registered for the version, where one was. */
  registeredDigest: string | undefined;
}

export interface Lease {
  served: ServedModel;
  release(): void;
}

export class VersionSlot {
  readonly key: string;
  readonly modelId: string;
  readonly #deps: SlotDeps;
  #aim: SlotAim = NOTHING_WANTED;
  /** What a failure or a measurement is about: with another stamp it counts no more. */
  #stamp = '';
  #state: LoadedModel;
  #served: ServedModel | undefined;
  #operation: Promise<void> | undefined;
  #failure: LoadFailure | undefined;
  #evicted = false;
  #leases = 0;
  #whenFree: () => void = () => {};
  #booked = 0;
  /** Largest growth seen at a load, by what was loaded. */
  #measured: { stamp: string; bytes: number } | undefined;
  lastUsedAt = 0;

  constructor(
    readonly model: string,
    readonly version: string,
    readonly device: HostedDevice,
    deps: SlotDeps,
  ) {
    this.#deps = deps;
    this.modelId = `${model}@${version}`;
    this.key = `${this.modelId}@${device.device}`;
    this.#state = blankState(model, version, device.device);
  }

  get served(): ServedModel | undefined {
    return this.#served;
  }

  get isReady(): boolean {
    return this.#state.state === 'ready';
  }

  /** Something is being done to it; `settled` tells when that has ended. */
  get isBusy(): boolean {
    return this.#operation !== undefined;
  }

  /** It is as wanted, nothing is under way or to be tried again, and time alone changes nothing of it. */
  get isSteady(): boolean {
    if (this.#operation || this.#failure) return false;
    const goesWhenUnused = this.#served !== undefined && this.#aim.want === 'idle';
    return !goesWhenUnused && this.#nextStep().do === 'nothing';
  }

  get isPinned(): boolean {
    return this.#served?.source.config.pinned ?? this.#aim.source?.config.pinned ?? false;
  }

  /** Bytes that it takes, or has booked for its load. */
  get memoryHeld(): number {
    return this.#booked;
  }

  get isMeasured(): boolean {
    return this.#measured?.stamp === this.#stamp;
  }

  /** Nothing is loaded and nothing wants to be: it may be forgotten when its files are gone. */
  get isEmpty(): boolean {
    return this.#served === undefined && !this.#operation && this.#aim.source === null;
  }

  /** Why it cannot be loaded at present; null: it did not fail. */
  get failure(): RemudaError | null {
    return this.#served === undefined ? (this.#failure?.error ?? null) : null;
  }

  /** It failed for a reason that may pass by itself. */
  get mayRecover(): boolean {
    return this.#failure?.retryAt != null;
  }

  get want(): PlannedVersion['want'] {
    return this.#aim.want;
  }

  get wantedBecause(): string {
    return this.#aim.reason;
  }

  report(): LoadedModel {
    const config = this.#served?.source.config ?? this.#aim.source?.config;
    return {
      ...this.#state,
      load_mode: config?.load_mode ?? this.#state.load_mode,
      instances: config?.instances ?? this.#state.instances,
      last_used_at: this.lastUsedAt === 0 ? null : new Date(this.lastUsedAt).toISOString(),
      ...this.#served?.facts(),
    };
  }

  /** Resolves when nothing is being done to it. */
  async settled(): Promise<void> {
    while (this.#operation) await this.#operation;
  }

  /** Takes in what is wanted and does the next step towards it, unless one is under way. */
  tend(aim: SlotAim): void {
    const before = this.#stamp;
    this.#aim = aim;
    this.#stamp = stampOf(aim);
    if (before !== this.#stamp) this.#evicted = false;
    if (this.#operation) return;
    const step = this.#nextStep();
    if (step.do !== 'nothing') this.#begin(step, false);
    else this.#restingState();
  }

  /** Begins to load it for a request that waits, where it may be loaded. */
  loadForRequest(): boolean {
    const { want, source } = this.#aim;
    if (this.#operation || this.#served || want === 'off' || source === null) return false;
    if (isBlocked(this.#failure, this.#stamp, this.#deps.clock.now())) return false;
    this.#evicted = false;
    this.#begin({ do: 'load' }, true);
    return true;
  }

  /** For a job that runs in it; undefined: it takes no more. */
  lease(): Lease | undefined {
    const served = this.#served;
    if (!served || !this.isReady) return undefined;
    this.#leases++;
    this.lastUsedAt = this.#deps.clock.now();
    const release = (): void => {
      this.#leases--;
      this.lastUsedAt = this.#deps.clock.now();
      if (this.#leases === 0) this.#whenFree();
    };
    return { served, release };
  }

  /** Books memory for the load that is about to begin. */
  book(bytes: number): void {
    this.#booked = bytes;
  }

  /** Whether it may be unloaded to make room: idle, not pinned, and not wanted as much as the newcomer. */
  mayGoFor(newcomer: VersionSlot, byRequest: boolean): boolean {
    const idle = this.isReady && !this.#operation && this.#leases === 0;
    return idle && !this.isPinned && this.model !== newcomer.model && (byRequest || this.want !== 'load');
  }

  /** Unloads it to make room; a request brings it back. */
  async evict(forModel: string): Promise<void> {
    if (this.#operation || !this.#served) return;
    this.#evicted = true;
    this.#operate(() =>
      this.#unload(`unloaded to make room for ${forModel}; the next request loads it again`),
    );
    await this.#operation;
  }

  /** The runner could not load it again after a restart. */
  lost(error: RemudaError): void {
    this.#served = undefined;
    this.#booked = 0;
    this.#fail(new PassingLoadError(error.message));
    this.#deps.onSettled();
  }

  #nextStep(): SlotStep {
    const { want, source } = this.#aim;
    const now = this.#deps.clock.now();
    return nextStep({
      want,
      source,
      loaded: this.#served?.source ?? null,
      blocked: isBlocked(this.#failure, this.#stamp, now),
      evicted: this.#evicted,
      unusedMs: this.#leases > 0 ? 0 : now - this.lastUsedAt,
      idleMs: this.#deps.idleMs,
    });
  }

  #begin(step: SlotStep, byRequest: boolean): void {
    const { reason, source } = this.#aim;
    const work = {
      load: () => this.#load(source as ModelSource, byRequest),
      reload: () => this.#reload(source as ModelSource),
      scale: () => this.#change(source as ModelSource),
      configure: () => this.#change(source as ModelSource),
      unload: () =>
        this.#unload(
          'because' in step && step.because === 'idle' ? `unused for a while, and ${reason}` : reason,
        ),
      nothing: async () => {},
    };
    this.#operate(work[step.do]);
  }

  #operate(work: () => Promise<void>): void {
    const stamp = this.#stamp;
    this.#operation = work()
      .catch((error: unknown) => {
        this.#failure = loadFailure(error, stamp, this.#failure, this.#deps.clock.now());
        this.#fail(this.#failure.error);
      })
      .finally(() => {
        this.#operation = undefined;
        this.#deps.onSettled();
      });
  }

  async #load(source: ModelSource, byRequest: boolean): Promise<void> {
    const { digest } = source;
    this.#setState({ state: 'loading', reason: null, digest, provider: '' });
    try {
      const bytes = await this.#neededBytes(source);
      if (!(await this.device.makeRoom(this, bytes, byRequest))) {
        this.#leaveToRequests();
        return;
      }
      await this.#deps.announce();
      await this.#check(source);
      const report = await this.device.runner.load(source, {
        onStage: (stage) => this.#setState({ state: stage }),
      });
      this.#measure(report.memoryBytes, bytes);
      if (!(await this.#mayServe(source, byRequest))) return;
      await this.#deps.publish(report.signature, source);
      this.#served = this.#deps.serve(source, report.signature, this.device);
      this.#failure = undefined;
      this.lastUsedAt = this.#deps.clock.now();
      this.#setState({
        state: 'ready',
        reason: null,
        provider: report.provider,
        memory_bytes: report.memoryBytes,
      });
      this.#log('info', { provider: report.provider }, 'model ready');
      await this.#deps.announce();
    } catch (error) {
      this.#booked = 0;
      throw error;
    }
  }

  /**
   * Another worker may have become ready with other files while this one loaded; and it may take more memory than its
   * file let expect. What may not serve is unloaded.
   */
  async #mayServe(source: ModelSource, byRequest: boolean): Promise<boolean> {
    try {
      await this.#checkFleet(source);
      if (await this.device.makeRoom(this, this.#booked, byRequest)) return true;
    } catch (error) {
      await this.device.runner.unload(source.modelId);
      throw error;
    }
    await this.device.runner.unload(source.modelId);
    this.#leaveToRequests();
    return false;
  }

  /** The new one is loaded beside what serves, which the runner replaces when the new one is ready. */
  async #reload(source: ModelSource): Promise<void> {
    const served = this.#served as ServedModel;
    const old = served.source;
    await this.#check(source);
    const change = configChange(old.config, source.config);
    const changed = change.kind === 'reload' ? change.because.join(', ') : 'files';
    const report = await this.device.runner.load(source, {
      onStage: (stage) => this.#setState({ reason: `${changed} changed; beside what serves: ${stage}` }),
    });
    await this.#deps.publish(report.signature, source);
    served.reconfigure(source, report.signature);
    this.#failure = undefined;
    this.#setState({ reason: null, digest: source.digest, provider: report.provider });
    this.#log('info', { changed }, 'model loaded again beside what served');
  }

  /** Settings that apply to what is loaded. */
  async #change(source: ModelSource): Promise<void> {
    const served = this.#served as ServedModel;
    const { instances, max_batch_size: maxBatchSize, timeout_ms: timeoutMs } = source.config;
    const more = instances - served.source.config.instances;
    await this.device.runner.configure(this.modelId, { maxBatchSize, timeoutMs });
    // Never more batches than sessions: grown before it is told of, shrunk after.
    if (more > 0) await this.#scale(instances);
    served.reconfigure(source);
    if (more < 0) await this.#scale(instances);
    this.#failure = undefined;
    this.#setState({ reason: null });
    this.#deps.onChange(this);
    this.#log('info', { instances, max_batch_size: maxBatchSize }, 'settings applied');
  }

  async #scale(instances: number): Promise<void> {
    const { memoryBytes } = await this.device.runner.scale(this.modelId, instances);
    this.#booked += memoryBytes;
  }

  async #unload(reason: string): Promise<void> {
    const served = this.#served as ServedModel;
    this.#setState({ state: 'draining', reason });
    await this.#free();
    // What is still in it after that is handed back to the queue.
    await served.drain();
    await this.device.runner.unload(this.modelId);
    this.#served = undefined;
    this.#booked = 0;
    this.#setState({ state: 'unloaded', reason, provider: '', memory_bytes: null });
    this.#log('info', { reason }, 'model unloaded');
  }

  /** Resolves when no job is in it, or its time is up. */
  #free(): Promise<void> {
    if (this.#leases === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(this.#deps.drainMs, resolve);
      this.#whenFree = () => {
        cancel();
        resolve();
      };
    });
  }

  async #check(source: ModelSource): Promise<void> {
    const wrong = wrongDigest(this.#claim(source), this.#aim.registeredDigest);
    if (wrong !== null) throw new RemudaError('model_load_failed', wrong);
    if (this.#aim.rule) await this.#deps.checkRule(this.#aim.rule, this.device);
    await this.#checkFleet(source);
  }

  async #checkFleet(source: ModelSource): Promise<void> {
    const conflict = digestConflict(this.#claim(source), await this.#deps.fleet());
    if (conflict !== null) throw new PassingLoadError(conflict);
  }

  #claim({ digest, folder }: ModelSource) {
    return { workerId: this.#deps.workerId, model: this.model, version: this.version, digest, folder };
  }

  async #neededBytes(source: ModelSource): Promise<number> {
    if (this.isMeasured) return (this.#measured as { bytes: number }).bytes;
    const file = join(source.folder, source.modelFile ?? source.config.model_path);
    return (await estimateBytes(file)) * source.config.instances;
  }

  /** The growth of a process that had freed memory before says too little: never less than the estimate. */
  #measure(grown: number, needed: number): void {
    const before = this.isMeasured ? (this.#measured as { bytes: number }).bytes : 0;
    this.#measured = { stamp: this.#stamp, bytes: Math.max(grown, needed, before) };
    this.#booked = this.#measured.bytes;
  }

  #leaveToRequests(): void {
    this.#evicted = true;
    this.#booked = 0;
    this.#setState({ state: 'unloaded', reason: 'no room at present; the first request loads it' });
  }

  /** What a slot says of itself while nothing happens to it. */
  #restingState(): void {
    const { problem, reason, source } = this.#aim;
    const failed = this.#failure?.stamp === this.#stamp ? this.#failure.error.message : null;
    if (this.#served) this.#setState({ reason: problem ?? failed });
    else if (problem !== null) this.#setState({ state: 'failed', reason: problem });
    else if (failed === null && !(this.#evicted && this.#state.state === 'unloaded')) {
      this.#setState({ state: 'unloaded', reason, digest: source?.digest ?? this.#state.digest });
    }
  }

  #fail(error: RemudaError): void {
    if (this.#deps.isStopping()) return;
    const reason = error.message;
    if (this.#served) this.#setState({ state: 'ready', reason });
    else this.#setState({ state: 'failed', reason, provider: '', memory_bytes: null });
    this.#log('error', { reason }, this.#served ? 'model stays as it was' : 'model could not be loaded');
  }

  #setState(change: Partial<LoadedModel>): void {
    const before = this.#state;
    const state = { ...before, ...change };
    this.#state = state;
    if (state.state !== before.state || state.reason !== before.reason) this.#deps.onChange(this);
  }

  #log(level: 'info' | 'error', fields: Record<string, unknown>, message: string): void {
    const { model, version } = this;
    this.#deps.logger[level]({ model, version, device: this.device.device, ...fields }, message);
  }
}

const NOTHING_WANTED: SlotAim = {
  want: 'off',
  reason: '',
  source: null,
  rule: null,
  problem: null,
  registeredDigest: undefined,
};

/** Files and settings in one text. */
function stampOf({ source, registeredDigest }: SlotAim): string {
  return source ? `${source.digest} ${registeredDigest} ${stableJson(source.config)}` : '';
}

export function blankState(model: string, version: string, device: string): LoadedModel {
  return {
    model,
    version,
    digest: '',
    device,
    provider: '',
    state: 'unloaded',
    reason: null,
    load_mode: 'eager',
    instances: 1,
    memory_bytes: null,
    last_used_at: null,
    backlog_rows: 0,
    seconds_per_row: null,
    run_seconds: null,
    breaker: 'closed',
  };
}
