/** The slots of this worker: one for each version on each device that it may run on. */
import type { DeviceClass } from '@remuda/schemas';
import type { HostedDevice } from './hosted-device.js';
import { type SlotDeps, VersionSlot } from './version-slot.js';

export class SlotTable {
  readonly #deps: SlotDeps;
  readonly #byModel = new Map<string, Map<string, VersionSlot>>();

  constructor(deps: SlotDeps) {
    this.#deps = deps;
  }

  get all(): VersionSlot[] {
    return [...this.#byModel.values()].flatMap((slots) => [...slots.values()]);
  }

  get models(): string[] {
    return [...this.#byModel.keys()];
  }

  of(model: string): VersionSlot[] {
    return [...(this.#byModel.get(model)?.values() ?? [])];
  }

  /** Slots of a version on devices of a class. */
  find(model: string, version: string, deviceClass: DeviceClass): VersionSlot[] {
    return this.of(model).filter(
      (slot) => slot.version === version && slot.device.deviceClass === deviceClass,
    );
  }

  at(modelId: string, device: string): VersionSlot | undefined {
    const model = modelId.slice(0, modelId.lastIndexOf('@'));
    return this.#byModel.get(model)?.get(`${modelId}@${device}`);
  }

  ensure(model: string, version: string, device: HostedDevice): VersionSlot {
    const slots = this.#byModel.get(model) ?? new Map<string, VersionSlot>();
    this.#byModel.set(model, slots);
    const key = `${model}@${version}@${device.device}`;
    const slot = slots.get(key) ?? new VersionSlot(model, version, device, this.#deps);
    slots.set(key, slot);
    device.slots.add(slot);
    return slot;
  }

  /** Drops what is loaded no more and whose files are gone. */
  forgetEmpty(): void {
    for (const [model, slots] of this.#byModel) {
      for (const [key, slot] of slots) {
        if (!slot.isEmpty) continue;
        slots.delete(key);
        slot.device.slots.delete(slot);
      }
      if (slots.size === 0) this.#byModel.delete(model);
    }
  }
}
