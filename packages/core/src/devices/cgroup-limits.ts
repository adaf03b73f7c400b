/**
 * What the container may use, as cgroups v2 or v1 say: Node and the native library see the machine's cores and memory,
 * not the share that this process gets.
 */
import { posix } from 'node:path';

/** The text of a file, or undefined where there is none. */
export type ReadText = (path: string) => Promise<string | undefined>;

export interface CgroupLimits {
  /** Cores' worth of CPU time, 1.5 say; null: no limit. */
  cpus: number | null;
  /** null: no limit. */
  memoryBytes: number | null;
  /** What may still be taken before a limit is reached; null: no limit. */
  memoryFreeBytes: number | null;
}

const ROOT = '/sys/fs/cgroup';

/** The tightest limits of the process's own groups and of all above them. */
export async function readCgroupLimits(readText: ReadText): Promise<CgroupLimits> {
  const groups = parseGroups((await readText('/proc/self/cgroup')) ?? '');
  const v2 = foldersUp(ROOT, groups.get('') ?? '/');
  const cpu = foldersUp(posix.join(ROOT, 'cpu'), groups.get('cpu') ?? '/');
  const v1Memory = foldersUp(posix.join(ROOT, 'memory'), groups.get('memory') ?? '/');
  const [cpus, memory] = await Promise.all([
    Promise.all([
      ...v2.map((folder) => cpusV2(folder, readText)),
      ...cpu.map((folder) => cpusV1(folder, readText)),
    ]),
    Promise.all([
      ...v2.map((folder) => memoryOf(folder, V2_MEMORY, readText)),
      ...v1Memory.map((folder) => memoryOf(folder, V1_MEMORY, readText)),
    ]),
  ]);
  return {
    cpus: lowest(cpus),
    memoryBytes: lowest(memory.map(({ limit }) => limit)),
    memoryFreeBytes: lowest(memory.map(({ free }) => free)),
  };
}

/** Path of the group by controller; '' is the one of v2. Lines are id:controller,controller:path. */
function parseGroups(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    for (const controller of controllers.split(',')) groups.set(controller, path);
  }
  return groups;
}

/** The folder of a group and those of the groups above it. In a container only the upper ones may be visible. */
function foldersUp(root: string, path: string): string[] {
  const folders = [root];
  for (let group = path; group !== '/' && group !== '.'; group = posix.dirname(group)) {
    folders.push(posix.join(root, group));
  }
  return folders;
}

/** cpu.max: "150000 100000", or "max 100000". */
async function cpusV2(folder: string, readText: ReadText): Promise<number | null> {
  const [quota, period] = ((await readText(`${folder}/cpu.max`)) ?? '').trim().split(' ').map(Number);
  return quota && period ? quota / period : null;
}

/** cpu.cfs_quota_us: -1 is no limit. */
async function cpusV1(folder: string, readText: ReadText): Promise<number | null> {
  const [quota, period] = await Promise.all(
    ['cpu.cfs_quota_us', 'cpu.cfs_period_us'].map(async (name) =>
      Number(await readText(`${folder}/${name}`)),
    ),
  );
  return quota && period && quota > 0 ? quota / period : null;
}

interface MemoryFiles {
  limit: string;
  used: string;
  /** In memory.stat: file pages that the kernel takes back before it runs out. */
  reclaimable: string;
}

const V2_MEMORY: MemoryFiles = {
  limit: 'memory.max',
  used: 'memory.current',
  reclaimable: 'inactive_file',
};
const V1_MEMORY: MemoryFiles = {
  limit: 'memory.limit_in_bytes',
  used: 'memory.usage_in_bytes',
  reclaimable: 'total_inactive_file',
};

async function memoryOf(
  folder: string,
  files: MemoryFiles,
  readText: ReadText,
): Promise<{ limit: number | null; free: number | null }> {
  const limit = await bytesIn(`${folder}/${files.limit}`, readText);
  if (limit === null) return { limit, free: null };
  const [used, stat] = await Promise.all([
    bytesIn(`${folder}/${files.used}`, readText),
    readText(`${folder}/memory.stat`),
  ]);
  const reclaimable = Number(new RegExp(`^${files.reclaimable} (\\d+)`, 'm').exec(stat ?? '')?.[1] ?? 0);
  return { limit, free: Math.max(0, Math.min(limit, limit - (used ?? 0) + reclaimable)) };
}

/** A number of bytes; "max", and the huge number with which v1 says the same, are none. */
async function bytesIn(path: string, readText: ReadText): Promise<number | null> {
  const bytes = Number.parseInt((await readText(path)) ?? '', 10);
  return Number.isSafeInteger(bytes) ? bytes : null;
}

function lowest(limits: Array<number | null>): number | null {
  const set = limits.filter((limit) => limit !== null);
  return set.length === 0 ? null : Math.min(...set);
}
