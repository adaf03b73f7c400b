/** Processor, memory and GPUs, as a worker on this machine would find them. */
import { type Machine, probeMachine } from '@remuda/core/devices/probe';
import { type Finding, ok, warn } from './finding.js';

export async function checkMachine(probe: () => Promise<Machine> = probeMachine): Promise<Finding[]> {
  const { devices, notices, cores, usableCores } = await probe();
  const limit = usableCores < cores ? ` (of ${cores}: the container's limit)` : '';
  return [
    ...devices.map(({ device, description }) =>
      ok(`device ${device}`, device === 'cpu' ? `${description}${limit}` : description),
    ),
    ...notices.map((notice) =>
      warn('devices', notice, 'Repair the driver, or leave it: workers then use the CPU alone.'),
    ),
  ];
}
