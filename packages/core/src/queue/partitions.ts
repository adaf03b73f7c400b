/**
 * A partition is one BullMQ queue: model × device class × lane. All keys of a queue share one hash tag, its name in
 * braces, so that each queue lies on one node of a Cluster and different queues spread.
 */
import { DEVICE_CLASSES, type DeviceClass, type Lane } from '@remuda/schemas';

export interface Partition {
  model: string;
  deviceClass: DeviceClass;
  lane: Lane;
}

export const LANES: readonly Lane[] = ['interactive', 'bulk', 'chunks'];

/** "{text-direction/cpu/interactive}": "/" cannot stand in a model's name, ":" not in a queue's. */
export function queueName({ model, deviceClass, lane }: Partition): string {
  return `{${model}/${deviceClass}/${lane}}`;
}

/** The partition a queue name stands for, or null when it is none of ours. */
export function partitionOf(name: string): Partition | null {
  const match = /^\{([^/{}]+)\/([a-z]+)\/(interactive|bulk|chunks)\}$/.exec(name);
  if (!match || !(DEVICE_CLASSES as readonly string[]).includes(match[2] as string)) return null;
  return { model: match[1] as string, deviceClass: match[2] as DeviceClass, lane: match[3] as Lane };
}

/** Prefix of every BullMQ key. */
export function queuePrefix(keyPrefix: string): string {
  return `${keyPrefix}:queue`;
}
