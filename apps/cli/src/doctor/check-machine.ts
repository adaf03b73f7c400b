/** Processor, memory and GPUs, as a worker on this machine would find them. */
import { type Device, type Machine, probeMachine } from '@remuda/core/devices/probe';
import { type Finding, ok, warn } from './finding.js';

export async function checkMachine(probe: () => Promise<Machine> = probeMachine): Promise<Finding[]> {
  const machine = await probe();
  const { devices, notices } = machine;
  return [
    ...devices.map((device) =>
      ok(`device ${device.device}`, device.device === 'cpu' ? cpuText(device, machine) : gpuText(device)),
    ),
    ...notices.map((notice) =>
      warn('devices', notice, 'Repair the driver, or leave it: workers then use the CPU alone.'),
    ),
  ];
}

function cpuText({ description }: Device, machine: Machine): string {
  const { usableCores, cores, memoryFreeBytes, instructionSets } = machine;
  const limit = usableCores < cores ? ` (of ${cores}: the container's limit)` : '';
  const sets = instructionSets.length > 0 ? `; ${instructionSets.join(' ')}` : '';
  return `${description}${limit}, ${gibibytes(memoryFreeBytes)} free${sets}`;
}

function gpuText({ description, memory_free_bytes, utilisation, compute_capability, uuid }: Device): string {
  return [
    description,
    ...(memory_free_bytes === null ? [] : [`${gibibytes(memory_free_bytes)} free`]),
    ...(utilisation === null ? [] : [`${Math.round(utilisation * 100)} % busy`]),
    ...(compute_capability === null ? [] : [`compute capability ${compute_capability}`]),
    ...(uuid === null ? [] : [uuid]),
  ].join(', ');
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
