/**
 * Which devices of a machine a worker serves on: the CPU and every GPU that was found, or those that its settings name.
 * Devices that no probe finds (webgpu, coreml, dml) are there when they are named; tensorrt:0 is the GPU cuda:0 under
 * another provider. Whether the provider loads turns out at the first load.
 */
import { DEVICE_CLASSES } from '@remuda/schemas';
import type { Device, Machine } from './machine.js';

const NAME = new RegExp(`^(${DEVICE_CLASSES.join('|')})(?::(\\d{1,3}))?$`);
/** Classes whose devices a probe lists: what is named and not found is a mistake. */
const PROBED: ReadonlySet<string> = new Set(['cpu', 'cuda', 'tensorrt']);

/** @param names empty: all that were found. @throws Error that names the device and those there are */
export function chooseDevices(machine: Machine, names: readonly string[]): Machine {
  if (names.length === 0) return machine;
  return { ...machine, devices: [...new Set(names)].map((name) => deviceNamed(name, machine)) };
}

function deviceNamed(name: string, { devices }: Machine): Device {
  const [, deviceClass, index = '0'] = NAME.exec(name) ?? [];
  if (deviceClass === undefined) {
    throw new Error(
      `"${name}" is no device: write a class (${DEVICE_CLASSES.join(', ')}) or one of it, cuda:0 say`,
    );
  }
  const found = devices.find(({ device }) => device === name || device === `${deviceClass}:${index}`);
  if (found) return found;
  const gpu =
    deviceClass === 'tensorrt' ? devices.find(({ device }) => device === `cuda:${index}`) : undefined;
  if (gpu) return { ...gpu, device: `tensorrt:${index}`, device_class: 'tensorrt' };
  if (PROBED.has(deviceClass)) {
    const known = devices.map(({ device }) => device).join(', ');
    throw new Error(`this machine has no device ${name}; it has ${known}`);
  }
  const [cpu] = devices;
  return {
    device: name,
    device_class: deviceClass,
    description: `${deviceClass}, as the settings say`,
    memory_total_bytes: null,
    memory_free_bytes: null,
    utilisation: null,
    compute_capability: null,
    uuid: null,
    driver: null,
    probed_at: cpu?.probed_at ?? null,
  };
}
