/**
 * What this machine has now: processor, cores and memory within the limits of its container, and NVIDIA GPUs as
 * nvidia-smi lists them. Loads no native runtime: whether a provider really works is for a runner to find out.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import * as os from 'node:os';
import { promisify } from 'node:util';
import { type ReadText, readCgroupLimits } from './cgroup-limits.js';

export interface Device {
  /** cpu, cuda:0, … */
  device: string;
  device_class: string;
  description: string;
}

export interface Machine {
  cpuModel: string;
  /** Cores that the system would schedule this process on. */
  cores: number;
  /** Cores' worth of CPU time that the container may use; null: no limit. */
  cpuLimit: number | null;
  /** Whole cores that it is sensible to use: at least 1. Set thread counts by this, not by `cores`. */
  usableCores: number;
  /** The machine's memory, or the container's where that is less. */
  memoryBytes: number;
  /** The CPU first, then GPUs by number. */
  devices: Device[];
  /** What was looked for and gave an error, for `remuda doctor`. That there is no GPU is not one. */
  notices: string[];
}

/** Where the facts come from: replaced in tests by recorded ones. */
export interface ProbeSources {
  readText: ReadText;
  /** Standard output of a program. Rejects with code ENOENT where there is no such program. */
  run(program: string, args: readonly string[]): Promise<string>;
  cpus(): { model: string }[];
  availableParallelism(): number;
  totalmem(): number;
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
};

export async function probeMachine(sources: ProbeSources = systemSources): Promise<Machine> {
  const [limits, gpus] = await Promise.all([readCgroupLimits(sources.readText), probeGpus(sources)]);
  const cores = sources.availableParallelism();
  const usableCores = Math.max(1, Math.floor(Math.min(cores, limits.cpus ?? cores)));
  const memoryBytes = Math.min(sources.totalmem(), limits.memoryBytes ?? Number.POSITIVE_INFINITY);
  const cpuModel = sources.cpus()[0]?.model.trim() || 'unknown processor';
  const description = `${cpuModel}, ${plural(usableCores, 'core')}, ${gibibytes(memoryBytes)} memory`;
  return {
    cpuModel,
    cores,
    cpuLimit: limits.cpus,
    usableCores,
    memoryBytes,
    devices: [{ device: 'cpu', device_class: 'cpu', description }, ...gpus.devices],
    notices: gpus.notices,
  };
}

const GPU_QUERY = ['--query-gpu=index,name,memory.total,driver_version', '--format=csv,noheader,nounits'];

async function probeGpus({ run }: ProbeSources): Promise<Pick<Machine, 'devices' | 'notices'>> {
  try {
    return { devices: parseGpus(await run('nvidia-smi', GPU_QUERY)), notices: [] };
  } catch (error) {
    const { code, stdout, message } = error as { code?: unknown; stdout?: string; message?: string };
    if (code === 'ENOENT') return { devices: [], notices: [] };
    const reason = (stdout || message || String(error)).trim().split('\n')[0];
    return { devices: [], notices: [`nvidia-smi is there and failed: ${reason}`] };
  }
}

/** Lines of index, name, MiB of memory, driver version. */
function parseGpus(csv: string): Device[] {
  return csv.split('\n').flatMap((line) => {
    const [index, name, mebibytes, driver] = line.split(',').map((field) => field.trim());
    if (index === undefined || !/^\d+$/.test(index)) return [];
    const bytes = Number(mebibytes) * 2 ** 20;
    const memory = Number.isFinite(bytes) ? `, ${gibibytes(bytes)} memory` : '';
    const description = `${name}${memory}, driver ${driver}`;
    return [{ device: `cuda:${index}`, device_class: 'cuda', description }];
  });
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
