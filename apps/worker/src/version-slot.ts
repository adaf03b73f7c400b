/**
 * One version on one device of this worker. Takes in what is wanted of it, decides the next step (slot-step.ts) and has
 * it done (held-version.ts): one at a time; what is wanted meanwhile is looked at afterwards. A failure leaves what
 * serves as it is.
 *
 *   loading → warming → verifying → ready → draining → unloaded, or failed
 */
import type { RemudaError } from '@remuda/core/errors';
import type { ModelSource } from '@remuda/core/harness/harness';
import type { PlannedVersion } from '@remuda/core/models/version-plan';
import type { LoadedModel } from '@remuda/schemas';
import { HeldVersion, type HeldVersionDeps } from './held-version.js';
import type { HostedDevice } from './hosted-device.js';
import { type Lease, Leases } from './leases.js';
import { isBlocked, type LoadFailure, loadFailure, PassingLoadError } from './load-failure.js';
import type { ServedModel } from './served-model.js';
import { NOTHING_WANTED, type SlotAim, stampOf } from './slot-aim.js';
import { SlotMemory } from './slot-memory.js';
import { blankState, SlotReport } from './slot-report.js';
import { nextStep, type SlotStep } from './slot-step.js';

/** What a slot needs of the worker around it. */
export interface SlotDeps extends HeldVersionDeps {
  /** A version outside the policy goes after being unused that long, in milliseconds. */
  idleMs: number;
  /** From now on a failure is the stop's. */
  isStopping(): boolean;
  /** A state has changed. */
  onChange(slot: VersionSlot): void;
  /** Something has ended: what is wanted now may differ. */
  onSettled(): void;
}

export class VersionSlot {
  readonly key: string;
  readonly modelId: string;
  readonly #deps: SlotDeps;
  readonly #report: SlotReport;
  readonly #leases: Leases;
  readonly #memory = new SlotMemory();
  readonly #held: HeldVersion;
  #aim: SlotAim = NOTHING_WANTED;
  #stamp = stampOf(NOTHING_WANTED);
  #operation: Promise<void> | undefined;
  #failure: LoadFailure | undefined;
  /** It was unloaded to make room, or found none: a request brings it back. */
  #leftToRequests = false;

  constructor(
    readonly model: string,
    readonly version: string,
    readonly device: HostedDevice,
    deps: SlotDeps,
  ) {
    this.#deps = deps;
    this.modelId = `${model}@${version}`;
    this.key = `${this.modelId}@${device.device}`;
    this.#leases = new Leases(deps.clock);
    this.#report = new SlotReport(blankState(model, version, device.device), () => deps.onChange(this));
    this.#held = new HeldVersion({
      deps,
      device,
      memory: this.#memory,
      leases: this.#leases,
      report: this.#report,
      makeRoom: (bytes, byRequest) => device.makeRoom(this, bytes, byRequest),
      onSettingsApplied: () => deps.onChange(this),
    });
  }

  get served(): ServedModel | undefined {
    return this.#held.served;
  }

  get isReady(): boolean {
    return this.#report.now.state === 'ready';
  }

  /** Something is being done to it; `settled` tells when that has ended. */
  get isBusy(): boolean {
    return this.#operation !== undefined;
  }

  /** It is as wanted, nothing is under way or to be tried again, and time alone changes nothing of it. */
  get isSteady(): boolean {
    if (this.#operation || this.#failure) return false;
    const goesWhenUnused = this.served !== undefined && this.#aim.want === 'idle';
    // What the rules have left goes when others serve it.
    const goesByFleet = this.served !== undefined && this.#aim.source === null;
    return !goesWhenUnused && !goesByFleet && this.#nextStep().do === 'nothing';
  }

  get isPinned(): boolean {
    return this.served?.source.config.pinned ?? this.#aim.source?.config.pinned ?? false;
  }

  /** Unix milliseconds; 0: never. */
  get lastUsedAt(): number {
    return this.#leases.lastUsedAt;
  }

  /** Bytes that it takes, or has booked for its load. */
  get memoryHeld(): number {
    return this.#memory.booked;
  }

  get isMeasured(): boolean {
    return this.#memory.isMeasured(this.#stamp);
  }

  /** Nothing is loaded and nothing wants to be: it may be forgotten when its files are gone. */
  get isEmpty(): boolean {
    return this.served === undefined && !this.#operation && this.#aim.source === null;
  }

  /** What is to be loaded; null: its files are gone or faulty. */
  get source(): ModelSource | null {
    return this.#aim.source;
  }

  /** Why it cannot be loaded at present; null: it did not fail. */
  get failure(): RemudaError | null {
    return this.served === undefined ? (this.#failure?.error ?? null) : null;
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
    const { now } = this.#report;
    const config = this.served?.source.config ?? this.#aim.source?.config;
    return {
      ...now,
      load_mode: config?.load_mode ?? now.load_mode,
      instances: config?.instances ?? now.instances,
      last_used_at: this.lastUsedAt === 0 ? null : new Date(this.lastUsedAt).toISOString(),
      ...this.served?.facts(),
    };
  }

  /** Resolves when nothing is being done to it. */
  async settled(): Promise<void> {
    while (this.#operation) await this.#operation;
  }

  /** Takes in what is wanted and does the next step towards it, unless one is under way. */
  tend(aim: SlotAim): void {
    const stamp = stampOf(aim);
    if (stamp !== this.#stamp) this.#leftToRequests = false;
    this.#aim = aim;
    this.#stamp = stamp;
    if (this.#operation) return;
    const step = this.#nextStep();
    if (step.do !== 'nothing') this.#begin(step, false);
    else this.#rest();
  }

  /** Begins to load it for a request that waits, where it may be loaded. */
  loadForRequest(): boolean {
    const { want, source } = this.#aim;
    if (this.#operation || this.served || want === 'off' || source === null) return false;
    if (isBlocked(this.#failure, this.#stamp, this.#deps.clock.now())) return false;
    this.#leftToRequests = false;
    this.#begin({ do: 'load' }, true);
    return true;
  }

  /** For a job that runs in it; undefined: it takes no more. */
  lease(): Lease | undefined {
    return this.served && this.isReady ? this.#leases.take(this.served) : undefined;
  }

  /** Books memory for the load that is about to begin. */
  book(bytes: number): void {
    this.#memory.booked = bytes;
  }

  /** Whether it may be unloaded to make room: idle, not pinned, and not wanted as much as the newcomer. */
  mayGoFor(newcomer: VersionSlot, byRequest: boolean): boolean {
    const idle = this.isReady && !this.#operation && !this.#leases.inUse;
    return idle && !this.isPinned && this.model !== newcomer.model && (byRequest || this.want !== 'load');
  }

  /** Unloads it to make room; a request brings it back. */
  async evict(forModel: string): Promise<void> {
    if (this.#operation || !this.served) return;
    this.#leftToRequests = true;
    const reason = `unloaded to make room for ${forModel}; the next request loads it again`;
    this.#operate(() => this.#held.unload(reason));
    await this.#operation;
  }

  /** The runner could not load it again after a restart. */
  lost(error: RemudaError): void {
    this.#held.forget();
    this.#failed(new PassingLoadError(error.message));
    this.#deps.onSettled();
  }

  #nextStep(): SlotStep {
    const { want, source } = this.#aim;
    return nextStep({
      want,
      source,
      loaded: this.served?.source ?? null,
      blocked: isBlocked(this.#failure, this.#stamp, this.#deps.clock.now()),
      evicted: this.#leftToRequests,
      unusedMs: this.#leases.unusedMs,
      idleMs: this.#deps.idleMs,
    });
  }

  #begin(step: SlotStep, byRequest: boolean): void {
    const { reason, source } = this.#aim;
    const idle = 'because' in step && step.because === 'idle';
    const work = {
      load: () => this.#load(byRequest),
      reload: () => this.#held.reload(source as ModelSource, this.#aim),
      scale: () => this.#held.change(source as ModelSource),
      configure: () => this.#held.change(source as ModelSource),
      unload: () => this.#held.unload(idle ? `unused for a while, and ${reason}` : reason),
      nothing: async () => {},
    };
    this.#operate(work[step.do]);
  }

  async #load(byRequest: boolean): Promise<void> {
    const loaded = await this.#held.load(this.#aim, this.#stamp, byRequest);
    if (!loaded) this.#leftToRequests = true;
  }

  #operate(work: () => Promise<void>): void {
    const stamp = this.#stamp;
    this.#operation = work()
      .then(
        () => {
          this.#failure = undefined;
        },
        (error: unknown) => {
          this.#failure = loadFailure(error, stamp, this.#failure, this.#deps.clock.now());
          this.#failed(this.#failure.error);
        },
      )
      .finally(() => {
        this.#operation = undefined;
        this.#deps.onSettled();
      });
  }

  /** What a slot says of itself while nothing happens to it. */
  #rest(): void {
    const { problem, reason, source } = this.#aim;
    const { now } = this.#report;
    const failed = this.#failure?.stamp === this.#stamp ? this.#failure.error.message : null;
    if (this.served) this.#report.set({ reason: problem ?? failed });
    else if (problem !== null) this.#report.set({ state: 'failed', reason: problem });
    else if (failed === null && !(this.#leftToRequests && now.state === 'unloaded')) {
      this.#report.set({ state: 'unloaded', reason, digest: source?.digest ?? now.digest });
    }
  }

  #failed({ message: reason }: RemudaError): void {
    if (this.#deps.isStopping()) return;
    if (this.served) this.#report.set({ state: 'ready', reason });
    else this.#report.set({ state: 'failed', reason, provider: '', memory_bytes: null });
    const { model, version } = this;
    const fields = { model, version, device: this.device.device, reason };
    this.#deps.logger.error(fields, this.served ? 'model stays as it was' : 'model could not be loaded');
  }
}
