/**
 * A device of this worker: its runner process, the versions on it, and the memory that they may take. Room is made for
 * one version at a time, so that no two count on the same bytes.
 */
import { ModelLoadError } from '@remuda/core/errors';
import type { RunnerProcess } from '@remuda/core/inference/runner-process';
import { SharedGate } from '@remuda/core/inference/shared-gate';
import { roomFor, showBytes } from '@remuda/core/models/memory-budget';
import type { DeviceClass } from '@remuda/schemas';
import { PassingLoadError } from './load-failure.js';
import type { VersionSlot } from './version-slot.js';

/** What is used of a runner: tests put something lighter in its place. */
export type ModelRunner = Pick<
  RunnerProcess,
  'start' | 'stop' | 'status' | 'load' | 'unload' | 'configure' | 'scale' | 'run'
>;

export interface HostedDeviceOptions {
  /** cpu, cuda:0, … */
  device: string;
  deviceClass: DeviceClass;
  runner: ModelRunner;
  /** Most bytes that models may take here; null: no limit. */
  budgetBytes: number | null;
}

export class HostedDevice {
  readonly device: string;
  readonly deviceClass: DeviceClass;
  readonly runner: ModelRunner;
  /** Suspects of any model run alone in the whole process. */
  readonly gate = new SharedGate();
  readonly budgetBytes: number | null;
  readonly slots = new Set<VersionSlot>();
  #roomTurn: Promise<unknown> = Promise.resolve();

  constructor({ device, deviceClass, runner, budgetBytes }: HostedDeviceOptions) {
    this.device = device;
    this.deviceClass = deviceClass;
    this.runner = runner;
    this.budgetBytes = budgetBytes;
  }

  /** Bytes that the versions here take, or have booked. */
  get memoryHeld(): number {
    return [...this.slots].reduce((sum, slot) => sum + slot.memoryHeld, 0);
  }

  /**
   * Sees to it that `bytes` more fit, and books them for the slot. Without a request that waits for it a version does
   * not push out what is wanted as much as itself.
   * @returns false: there would be room if a request asked for it
   * @throws ModelLoadError: it can never fit; PassingLoadError: what is in use leaves no room now
   */
  makeRoom(slot: VersionSlot, bytes: number, byRequest: boolean): Promise<boolean> {
    const turn = this.#roomTurn.then(() => this.#makeRoom(slot, bytes, byRequest));
    this.#roomTurn = turn.catch(() => {});
    return turn;
  }

  async #makeRoom(slot: VersionSlot, bytes: number, byRequest: boolean): Promise<boolean> {
    const room = roomFor(this.budgetBytes, this.#occupants(slot, byRequest), bytes);
    if (room.fits) {
      slot.book(bytes);
      const leaving = [...this.slots].filter((other) => room.evict.includes(other.key));
      await Promise.all(leaving.map((other) => other.evict(slot.modelId)));
      return true;
    }
    const numbers = this.#numbers(slot, bytes, room.held);
    const pinned = [...this.slots]
      .filter((other) => other !== slot && other.isPinned)
      .reduce((sum, other) => sum + other.memoryHeld, 0);
    if (bytes + pinned > (this.budgetBytes as number)) throw new ModelLoadError(numbers);
    if (byRequest) throw new PassingLoadError(`${numbers}; the versions there are in use or pinned`);
    return false;
  }

  #occupants(newcomer: VersionSlot, byRequest: boolean) {
    return [...this.slots]
      .filter((slot) => slot !== newcomer && slot.memoryHeld > 0)
      .map((slot) => ({
        key: slot.key,
        bytes: slot.memoryHeld,
        lastUsedAt: slot.lastUsedAt,
        evictable: slot.mayGoFor(newcomer, byRequest),
      }));
  }

  #numbers(slot: VersionSlot, bytes: number, held: number): string {
    const budget = showBytes(this.budgetBytes as number);
    return (
      `${slot.modelId} needs ${showBytes(bytes)}${slot.isMeasured ? '' : ' (estimated from its file)'} on ` +
      `${this.device}: ${showBytes(held)} of the budget of ${budget} are taken. ` +
      'Raise REMUDA_WORKER_MEMORY_BUDGET, or serve it elsewhere'
    );
  }
}
