/**
 * What a probe finds out about a machine, and how a recorded one stands in for it: the words are those of the
 * heartbeat, so a worker's entry of GET /v1/fleet can be kept as a file and played back. Probed by probe.ts.
 */
import { readFile } from 'node:fs/promises';
import { DeviceStatus, WorkerHeartbeat } from '@remuda/schemas';
import * as z from 'zod';

/** A device, with the facts that rules are held against; null: not known. */
export const Device = DeviceStatus.pick({
  device: true,
  device_class: true,
  description: true,
  memory_total_bytes: true,
  memory_free_bytes: true,
  utilisation: true,
  compute_capability: true,
  uuid: true,
  driver: true,
  probed_at: true,
});
export type Device = z.infer<typeof Device>;

export interface Machine {
  cpuModel: string;
  /** null: cannot be found out. */
  physicalCores: number | null;
  /** Of the whole machine. */
  threads: number;
  /** Those that matter to inference, in the kernel's words. */
  instructionSets: string[];
  /** Cores that the system would schedule this process on. */
  cores: number;
  /** Cores' worth of CPU time that the container may use; null: no limit. */
  cpuLimit: number | null;
  /** Whole cores that it is sensible to use: at least 1. Set thread counts by this, not by `cores`. */
  usableCores: number;
  /** The machine's memory, or the container's where that is less. */
  memoryBytes: number;
  /** What is left of it now. */
  memoryFreeBytes: number;
  /** The CPU first, then GPUs by number. */
  devices: Device[];
  /** What was looked for and gave an error, for `remuda doctor`. That there is no GPU is not one. */
  notices: string[];
  /** Unix milliseconds. */
  probedAt: number;
}

/** The fields of a heartbeat that say what its machine is. */
export type MachineStatus = Pick<WorkerHeartbeat, 'cpu' | 'cores' | 'memory_bytes' | 'memory_free_bytes'>;

export function machineStatus(machine: Machine): MachineStatus {
  return {
    cores: machine.usableCores,
    cpu: {
      model: machine.cpuModel,
      physical_cores: machine.physicalCores,
      threads: machine.threads,
      instruction_sets: machine.instructionSets,
      cgroup_cores: machine.cpuLimit,
    },
    memory_bytes: machine.memoryBytes,
    memory_free_bytes: machine.memoryFreeBytes,
  };
}

const RecordedMachine = WorkerHeartbeat.pick({ cpu: true, cores: true, memory_bytes: true })
  .extend({
    memory_free_bytes: z.int().nullable().default(null),
    devices: z.array(
      Device.partial().required({ device: true, device_class: true, description: true }).strip(),
    ),
  })
  .strip();

/**
 * A machine from a file: a worker's entry of GET /v1/fleet, or the fields of it that describe the machine.
 * @throws Error that names the file and what is wrong in it
 */
export async function readRecordedMachine(path: string, now: number): Promise<Machine> {
  try {
    return machineOf(RecordedMachine.parse(JSON.parse(await readFile(path, 'utf8'))), now);
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new Error(`${path} is not a recorded machine (a worker's entry of GET /v1/fleet): ${reason}`);
  }
}

function machineOf(recorded: z.infer<typeof RecordedMachine>, now: number): Machine {
  const { cpu, cores, memory_bytes, memory_free_bytes, devices } = recorded;
  return {
    cpuModel: cpu?.model ?? 'unknown processor',
    physicalCores: cpu?.physical_cores ?? null,
    threads: cpu?.threads ?? cores,
    instructionSets: cpu?.instruction_sets ?? [],
    cores,
    cpuLimit: cpu?.cgroup_cores ?? null,
    usableCores: cores,
    memoryBytes: memory_bytes,
    memoryFreeBytes: memory_free_bytes ?? memory_bytes,
    devices: devices.map((device) => ({
      ...NOTHING_KNOWN,
      probed_at: new Date(now).toISOString(),
      ...device,
    })),
    notices: [],
    probedAt: now,
  };
}

const NOTHING_KNOWN = {
  memory_total_bytes: null,
  memory_free_bytes: null,
  utilisation: null,
  compute_capability: null,
  uuid: null,
  driver: null,
} as const;
