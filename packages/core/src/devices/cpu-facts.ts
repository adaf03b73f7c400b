/**
 * The processor in the operating system's own words: /proc/cpuinfo on Linux, sysctl on macOS. What neither says is
 * left unknown.
 */
import type { ReadText } from './cgroup-limits.js';

export interface CpuFacts {
  model: string | null;
  physicalCores: number | null;
  instructionSets: string[];
}

/** What changes how fast a model runs; everything else a processor can do is left out. */
const SETS_THAT_MATTER = [
  ...[
    'sse4_2',
    'avx',
    'avx2',
    'fma',
    'f16c',
    'avx_vnni',
    'avx512f',
    'avx512_vnni',
    'avx512_bf16',
    'avx512_fp16',
  ],
  ...['amx_tile', 'amx_int8', 'amx_bf16'],
  ...['neon', 'asimd', 'asimdhp', 'asimddp', 'i8mm', 'bf16', 'sve', 'sve2', 'sme'],
];

/** ARM says numbers, not names: implementer 0x41 (Arm) and the part. */
const ARM_PARTS: Record<string, string> = {
  '0xd08': 'Cortex-A72',
  '0xd0b': 'Cortex-A76',
  '0xd0c': 'Neoverse-N1',
  '0xd40': 'Neoverse-V1',
  '0xd42': 'Cortex-A78AE',
  '0xd49': 'Neoverse-N2',
  '0xd4f': 'Neoverse-V2',
};

/** @param threads how many logical processors the system lists */
export async function linuxCpu(readText: ReadText, threads: number): Promise<CpuFacts> {
  const processors = parseProcessors((await readText('/proc/cpuinfo')) ?? '');
  const first = processors[0] ?? new Map<string, string>();
  return {
    model: first.get('model name') ?? armModel(first),
    physicalCores: coresOf(processors) ?? (await coresOfTopology(readText, threads)),
    instructionSets: setsIn(first.get('flags') ?? first.get('Features') ?? ''),
  };
}

/** One map of fields for each processor; blocks are separated by empty lines. */
function parseProcessors(text: string): Map<string, string>[] {
  return text
    .split(/\n\s*\n/)
    .map(
      (block) =>
        new Map(
          [...block.matchAll(/^([^:\n]+?)[ \t]*:[ \t]*(.*)$/gm)].map(
            ([, k, v]) => [k, v] as [string, string],
          ),
        ),
    )
    .filter((fields) => fields.has('processor'));
}

function armModel(fields: ReadonlyMap<string, string>): string | null {
  const part = fields.get('CPU part');
  if (part === undefined) return null;
  return (fields.get('CPU implementer') === '0x41' ? ARM_PARTS[part] : undefined) ?? `ARM part ${part}`;
}

function coresOf(processors: readonly ReadonlyMap<string, string>[]): number | null {
  const cores = processors.flatMap((fields) => {
    const core = fields.get('core id');
    return core === undefined ? [] : [`${fields.get('physical id') ?? '0'}/${core}`];
  });
  return cores.length === 0 ? null : new Set(cores).size;
}

/** Where cpuinfo numbers no cores (ARM): threads of one core name the same list. */
async function coresOfTopology(readText: ReadText, threads: number): Promise<number | null> {
  const lists = await Promise.all(
    Array.from({ length: threads }, (_, cpu) =>
      readText(`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`),
    ),
  );
  const known = lists.filter((list) => list !== undefined);
  return known.length === 0 ? null : new Set(known.map((list) => list.trim())).size;
}

function setsIn(flags: string): string[] {
  const present = new Set(flags.split(/\s+/));
  return SETS_THAT_MATTER.filter((name) => present.has(name));
}

/** Names of sysctl for what Linux calls otherwise. */
const DARWIN_SETS: Record<string, string> = {
  'sse4.2': 'sse4_2',
  'avx1.0': 'avx',
  FEAT_FP16: 'asimdhp',
  FEAT_DotProd: 'asimddp',
  FEAT_I8MM: 'i8mm',
  FEAT_BF16: 'bf16',
  FEAT_SME: 'sme',
};

/** @param text what `sysctl hw machdep.cpu` prints: "name: value" a line */
export function darwinCpu(text: string): CpuFacts {
  const values = new Map(
    [...text.matchAll(/^([\w.]+): (.*)$/gm)].map(([, k, v]) => [k, v] as [string, string]),
  );
  const words = ['features', 'leaf7_features', 'extfeatures'].flatMap((name) =>
    (values.get(`machdep.cpu.${name}`) ?? '').toLowerCase().split(/\s+/),
  );
  const arm = [...values].flatMap(([name, value]) => {
    const feature = /^hw\.optional\.arm\.(FEAT_\w+)$/.exec(name)?.[1];
    return feature && value === '1' ? [feature] : [];
  });
  const neon = values.get('hw.optional.neon') === '1' || arm.length > 0 ? ['asimd'] : [];
  const physical = Number(values.get('hw.physicalcpu'));
  return {
    model: values.get('machdep.cpu.brand_string') ?? null,
    physicalCores: Number.isInteger(physical) && physical > 0 ? physical : null,
    instructionSets: setsIn([...neon, ...words, ...arm].map((name) => DARWIN_SETS[name] ?? name).join(' ')),
  };
}
