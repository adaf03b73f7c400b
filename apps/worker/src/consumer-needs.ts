/** Which queues this worker should have consumers on, and which it should look at now and then. Read from its slots. */
import { LANES, type Partition } from '@remuda/core/queue/partitions';
import type { DeviceClass } from '@remuda/schemas';
import { CHUNKS_A_DEVICE, type ConsumerNeed } from './model-consumers.js';
import type { SlotTable } from './slot-table.js';

/** One for each model and device class on which some version of it is ready. */
export function consumerNeeds(slots: SlotTable): ConsumerNeed[] {
  const needs = new Map<string, Required<ConsumerNeed>>();
  for (const { model, device, served, isReady } of slots.all) {
    if (!served || !isReady) continue;
    const { deviceClass } = device;
    const key = `${model}/${deviceClass}`;
    const need = needs.get(key) ?? { model, deviceClass, concurrency: 0, chunks: 0 };
    need.concurrency += served.wantedInFlight;
    need.chunks += CHUNKS_A_DEVICE;
    needs.set(key, need);
  }
  return [...needs.values()];
}

/**
 * Whether a job of the model could run here. Not where all its versions were unloaded by name: its jobs wait in the
 * queue, untouched, until one is loaded again.
 */
export function mayServe(slots: SlotTable, model: string, deviceClass: DeviceClass): boolean {
  return slots
    .of(model)
    .some(({ device, want, served }) => device.deviceClass === deviceClass && (want !== 'off' || served));
}

/** Queues of models that could run here and have no consumer here. */
export function unattendedQueues(
  slots: SlotTable,
  isOpen: (model: string, deviceClass: DeviceClass) => boolean,
): Partition[] {
  const found = new Map<string, Partition[]>();
  for (const { model, device } of slots.all) {
    const { deviceClass } = device;
    const key = `${model}/${deviceClass}`;
    if (found.has(key) || isOpen(model, deviceClass) || !mayServe(slots, model, deviceClass)) continue;
    found.set(
      key,
      LANES.map((lane) => ({ model, deviceClass, lane })),
    );
  }
  return [...found.values()].flat();
}
