/**
 * What this machine has now: processor, cores and memory within the limits of its container, and NVIDIA GPUs. Loads no
 * native runtime: whether a provider really works is for a runner to find out. Kept up to date by machine-watch.ts.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import * as os from 'node:os';
import { promisify } from 'node:util';
import { type ReadText, readCgroupLimits } from './cgroup-limits.js';
import { type CpuFacts, darwinCpu, linuxCpu } from './cpu-facts.js';
import type { Device, Machine } from './machine.js';
import { probeGpus, probeGpuUse, type RunProgram } from './nvidia-smi.js';

export type { Device, Machine } from './machine.js';

/** Where the facts come from: replaced in tests by recorded ones. */
export interface ProbeSources {
  readText: ReadText;
  run: RunProgram;
  cpus(): { model: string }[];
  availableParallelism(): number;
  totalmem(): number;
  freemem(): number;
  platform: NodeJS.Platform;
  now(): number;
}

const PROGRAM_TIMEOUT_MS = 10_000;

export const systemSources: ProbeSources = {
  readText: (path) => readFile(path, 'utf8').catch(() => undefined),
  async run(program, args) {
    const { stdout } = await promisify(execFile)(program, args, { timeout: PROGRAM_TIMEOUT_MS });
    return stdout;
  },
  cpus: os.cpus,
  availableParallelism: os.availableParallelism,
  totalmem: os.totalmem,
  freemem: os.freemem,
  platform: process.platform,
  now: Date.now,
};

export async function probeMachine(sources: ProbeSources = systemSources): Promise<Machine> {
  const now = sources.now();
  const [limits, memory, cpu, gpus] = await Promise.all([
    readCgroupLimits(sources.readText),
    probeMemory(sources),
    probeCpu(sources),
    probeGpus(sources.run, now),
  ]);
  const listed = sources.cpus();
  const cores = sources.availableParallelism();
  const usableCores = Math.max(1, Math.floor(Math.min(cores, limits.cpus ?? cores)));
  const cpuModel = listed[0]?.model.trim().replace(/^unknown$/i, '') || cpu.model || 'unknown processor';
  return {
    cpuModel,
    physicalCores: cpu.physicalCores,
    threads: listed.length || cores,
    instructionSets: cpu.instructionSets,
    cores,
    cpuLimit: limits.cpus,
    usableCores,
    ...memory,
    devices: [cpuDevice(cpuModel, usableCores, memory, now), ...gpus.devices],
    notices: gpus.notices,
    probedAt: now,
  };
}

/** The same machine with what changes from moment to moment read anew: free memory, utilisation. */
export async function reprobe(machine: Machine, sources: ProbeSources = systemSources): Promise<Machine> {
  const now = sources.now();
  const hasGpus = machine.devices.some(({ device }) => gpuOf(device).startsWith('cuda'));
  const [memory, use] = await Promise.all([
    probeMemory(sources),
    // A GPU that cannot be asked now keeps what was last known of it, and the time of that.
    hasGpus ? probeGpuUse(sources.run).catch(() => undefined) : undefined,
  ]);
  const probed_at = new Date(now).toISOString();
  const devices = machine.devices.map((device): Device => {
    if (device.device === 'cpu') return { ...device, memory_free_bytes: memory.memoryFreeBytes, probed_at };
    const changed = use?.get(gpuOf(device.device));
    return changed ? { ...device, ...changed, probed_at } : device;
  });
  return { ...machine, ...memory, devices, probedAt: now };
}

/** tensorrt:0 is the same hardware as cuda:0. */
function gpuOf(device: string): string {
  return device.replace(/^tensorrt/, 'cuda');
}

type Memory = Pick<Machine, 'memoryBytes' | 'memoryFreeBytes'>;

/** Of the machine, or of the container where that is less. */
async function probeMemory({ readText, totalmem, freemem }: ProbeSources): Promise<Memory> {
  const [limits, meminfo] = await Promise.all([readCgroupLimits(readText), readText('/proc/meminfo')]);
  // What the kernel could give: caches count as free. os.freemem() leaves them out on some systems.
  const kib = Number(/^MemAvailable:\s+(\d+) kB/m.exec(meminfo ?? '')?.[1] ?? Number.NaN);
  const available = Number.isNaN(kib) ? freemem() : kib * 1024;
  return {
    memoryBytes: Math.min(totalmem(), limits.memoryBytes ?? Number.POSITIVE_INFINITY),
    memoryFreeBytes: Math.min(available, limits.memoryFreeBytes ?? Number.POSITIVE_INFINITY),
  };
}

async function probeCpu({ readText, run, cpus, platform }: ProbeSources): Promise<CpuFacts> {
  if (platform === 'linux') return linuxCpu(readText, cpus().length);
  if (platform === 'darwin') return darwinCpu(await run('sysctl', ['hw', 'machdep.cpu']).catch(() => ''));
  return { model: null, physicalCores: null, instructionSets: [] };
}

function cpuDevice(model: string, cores: number, memory: Memory, now: number): Device {
  return {
    device: 'cpu',
    device_class: 'cpu',
    description: `${model}, ${cores} core${cores === 1 ? '' : 's'}, ${(memory.memoryBytes / 2 ** 30).toFixed(1)} GiB memory`,
    memory_total_bytes: memory.memoryBytes,
    memory_free_bytes: memory.memoryFreeBytes,
    utilisation: null,
    compute_capability: null,
    uuid: null,
    driver: null,
    probed_at: new Date(now).toISOString(),
  };
}
