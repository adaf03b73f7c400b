/**
 * Gets a job the version that it names. A loaded one at once; one that may be loaded is loaded while its jobs wait, and
 * no others; for what this worker cannot load, the job goes back where another worker may have it, and ends with an
 * error where none has.
 */
import { itemError } from '@remuda/core/errors';
import { type ElsewhereFacts, servedElsewhere } from '@remuda/core/models/served-elsewhere';
import { takenOutError } from '@remuda/core/models/taken-out';
import type { Partition } from '@remuda/core/queue/partitions';
import type { ItemError, ModelDeployment, WorkerHeartbeat } from '@remuda/schemas';
import type { Lease } from './leases.js';
import type { SlotTable } from './slot-table.js';
import type { VersionSlot } from './version-slot.js';

export type Acquired =
  | { kind: 'leased'; lease: Lease }
  /** Back to the queue. ring: a worker that could load it may not know that it waits. */
  | { kind: 'later'; afterMs: number; ring: boolean }
  | { kind: 'never'; error: ItemError };

export interface WantedVersion {
  partition: Partition;
  version: string;
  /** How often the job was given back before. */
  returns: number;
}

export interface AcquireDeps {
  workerId: string;
  slots: SlotTable;
  isStopping(): boolean;
  deployment(model: string): ModelDeployment;
  /** The fleet, as of now. */
  fleet(): Promise<readonly WorkerHeartbeat[]>;
}

/** Where another worker may have it: the job waits before the next look, ever longer. */
const LATER_MS = { first: 500, most: 30_000 };
/** Where another is known to have it, or to load it: which of the workers takes a job is up to chance. */
const MOST_WHERE_KNOWN_MS = 3_000;
/** Where the desired state keeps it unloaded: so late it may notice that it was loaded again. */
const MOST_HELD_BACK_MS = 10_000;
/** So often a job is given back before it ends for want of a worker: one may be starting, or getting the files. */
const RETURNS_BEFORE_NEVER = 4;
/** Jobs that wait for one version while another of the model serves from the same queue. */
const MOST_WAITING = 8;

export class VersionDesk {
  readonly #deps: AcquireDeps;
  readonly #waiting = new Map<VersionSlot, number>();

  constructor(deps: AcquireDeps) {
    this.#deps = deps;
  }

  async acquire(wanted: WantedVersion): Promise<Acquired> {
    // Each round waits for one thing that happens to the version; a few see it loaded or failed.
    for (let round = 0; round < 3; round++) {
      if (this.#deps.isStopping()) return later(0);
      const { partition, version } = wanted;
      const slots = this.#deps.slots.find(partition.model, version, partition.deviceClass);
      const lease = leastBusy(slots)?.lease();
      if (lease) return { kind: 'leased', lease };
      const loading = slots.find((slot) => slot.isBusy) ?? slots.find((slot) => slot.loadForRequest());
      if (!loading) return this.#refer(wanted, slots);
      if (!(await this.#wait(loading, partition))) return later(LATER_MS.first);
    }
    return later(pauseOf(wanted));
  }

  /** False: enough wait for it already, and others would be held up behind them. */
  async #wait(slot: VersionSlot, { model, deviceClass }: Partition): Promise<boolean> {
    const waiting = this.#waiting.get(slot) ?? 0;
    const others = this.#deps.slots
      .of(model)
      .some((other) => other.isReady && other.device.deviceClass === deviceClass);
    if (others && waiting >= MOST_WAITING) return false;
    this.#waiting.set(slot, waiting + 1);
    await slot.settled();
    const left = (this.#waiting.get(slot) as number) - 1;
    if (left === 0) this.#waiting.delete(slot);
    else this.#waiting.set(slot, left);
    return true;
  }

  /** It is not to be had here. */
  async #refer(wanted: WantedVersion, slots: readonly VersionSlot[]): Promise<Acquired> {
    const { model } = wanted.partition;
    if (!this.#deps.deployment(model).registered) {
      return { kind: 'never', error: takenOutError(model) };
    }
    const elsewhere = servedElsewhere(await this.#factsOf(wanted));
    if (elsewhere === 'served' || elsewhere === 'loadable' || elsewhere === 'starting') {
      return { ...later(pauseOf(wanted, MOST_WHERE_KNOWN_MS)), ring: elsewhere === 'loadable' };
    }
    // An admin may load it again.
    if (elsewhere === 'held_back' || slots.some(isHeldBack)) return later(pauseOf(wanted, MOST_HELD_BACK_MS));
    const failure = slots.map((slot) => slot.failure).find((error) => error !== null);
    if (failure && !slots.some((slot) => slot.mayRecover)) {
      return { kind: 'never', error: itemError(failure.code, failure.message) };
    }
    if (wanted.returns < RETURNS_BEFORE_NEVER) return later(pauseOf(wanted));
    return { kind: 'never', error: itemError('model_not_loaded', this.#message(wanted, slots)) };
  }

  async #factsOf({ partition, version }: WantedVersion): Promise<ElsewhereFacts> {
    const { model, deviceClass } = partition;
    const { workerId, deployment, fleet } = this.#deps;
    return {
      workerId,
      model,
      version,
      deviceClass,
      deployment: deployment(model),
      workers: await fleet(),
    };
  }

  #message({ partition, version }: WantedVersion, slots: readonly VersionSlot[]): string {
    const { model, deviceClass } = partition;
    const [slot] = slots;
    const reason =
      slot === undefined
        ? `worker ${this.#deps.workerId} has no such version for ${deviceClass}`
        : (slot.failure?.message ?? slot.wantedBecause);
    return `no live worker has ${model}@${version} loaded on ${deviceClass}, and none may load it: ${reason}`;
  }
}

function later(afterMs: number): Extract<Acquired, { kind: 'later' }> {
  return { kind: 'later', afterMs, ring: false };
}

/** Doubles with each return, up to `most`; spread, so that jobs do not return together. */
function pauseOf({ returns }: WantedVersion, most = LATER_MS.most): number {
  const pause = Math.min(most, LATER_MS.first * 2 ** Math.min(16, returns));
  return Math.round(pause * (0.75 + Math.random() / 4));
}

/** It could be loaded, but the desired state says no. */
function isHeldBack({ want, source }: VersionSlot): boolean {
  return want === 'off' && source !== null;
}

function leastBusy(slots: readonly VersionSlot[]): VersionSlot | undefined {
  return slots
    .filter((slot) => slot.isReady)
    .reduce<VersionSlot | undefined>(
      (best, slot) => (best && backlogOf(best) <= backlogOf(slot) ? best : slot),
      undefined,
    );
}

function backlogOf(slot: VersionSlot): number {
  return slot.served?.backlog ?? 0;
}
