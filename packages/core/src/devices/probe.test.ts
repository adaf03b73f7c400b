/** Recorded outputs of machines and containers of several kinds. */
import { describe, expect, it } from 'vitest';
import { type ProbeSources, probeMachine, reprobe } from './probe.js';
import {
  A100_CSV,
  AMD_CPUINFO,
  APPLE_SYSCTL,
  ARM_CPUINFO,
  GB10_CSV,
  INTEL_CPUINFO,
  MEMINFO,
  MISMATCH_STDOUT,
  NO_DEVICES_STDOUT,
  NO_DRIVER_STDOUT,
  OLD_DRIVER_CSV,
  OLD_DRIVER_STDOUT,
  T4_CSV,
} from './recorded-outputs.fixture.js';

const GIB = 2 ** 30;
const NOW = Date.parse('2026-01-01T00:00:00Z');
const noProgram = () =>
  Promise.reject(Object.assign(new Error('spawn nvidia-smi ENOENT'), { code: 'ENOENT' }));

/** A machine of 8 cores and 32 GiB with the given files. */
function setup(files: Record<string, string> = {}, sources: Partial<ProbeSources> = {}) {
  return probeMachine({ ...testSources(files), ...sources });
}

function testSources(files: Record<string, string> = {}): ProbeSources {
  return {
    readText: async (path) => files[path],
    run: noProgram,
    cpus: () => Array(8).fill({ model: 'Intel(R) Xeon(R) Processor ' }),
    availableParallelism: () => 8,
    totalmem: () => 32 * GIB,
    freemem: () => 20 * GIB,
    platform: 'linux',
    now: () => NOW,
  };
}

describe('a machine without limits', () => {
  it('is its processor, cores and memory, and one CPU device', async () => {
    expect(await setup()).toEqual({
      cpuModel: 'Intel(R) Xeon(R) Processor',
      physicalCores: null,
      threads: 8,
      instructionSets: [],
      cores: 8,
      cpuLimit: null,
      usableCores: 8,
      memoryBytes: 32 * GIB,
      memoryFreeBytes: 20 * GIB,
      devices: [
        {
          device: 'cpu',
          device_class: 'cpu',
          description: 'Intel(R) Xeon(R) Processor, 8 cores, 32.0 GiB memory',
          memory_total_bytes: 32 * GIB,
          memory_free_bytes: 20 * GIB,
          utilisation: null,
          compute_capability: null,
          uuid: null,
          driver: null,
          probed_at: '2026-01-01T00:00:00.000Z',
        },
      ],
      notices: [],
      probedAt: NOW,
    });
  });

  it('may say so with "max" and -1', async () => {
    const unlimited = {
      '/proc/self/cgroup': '4:memory:/\n1:cpu:/\n0::/\n',
      '/sys/fs/cgroup/cpu.max': 'max 100000\n',
      '/sys/fs/cgroup/memory.max': 'max\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
    };
    expect(await setup(unlimited)).toMatchObject({ cpuLimit: null, usableCores: 8, memoryBytes: 32 * GIB });
  });
});

describe('the processor', () => {
  it('is known by its cores, threads and the instruction sets that matter', async () => {
    const machine = await setup({ '/proc/cpuinfo': INTEL_CPUINFO, '/proc/meminfo': MEMINFO });
    expect(machine).toMatchObject({
      physicalCores: 2,
      instructionSets: [
        'sse4_2',
        'avx',
        'avx2',
        'fma',
        'f16c',
        'avx_vnni',
        'avx512f',
        'avx512_vnni',
        'amx_int8',
      ],
      memoryFreeBytes: 24_000_000 * 1024,
    });
  });

  it('of AMD has two threads a core', async () => {
    const machine = await setup({ '/proc/cpuinfo': AMD_CPUINFO });
    expect(machine).toMatchObject({
      physicalCores: 1,
      instructionSets: ['sse4_2', 'avx', 'avx2', 'fma', 'f16c'],
    });
  });

  it('of ARM says numbers for its name, and cores elsewhere', async () => {
    const files: Record<string, string> = { '/proc/cpuinfo': ARM_CPUINFO };
    for (let cpu = 0; cpu < 8; cpu++)
      files[`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`] = `${cpu}\n`;
    const machine = await setup(files, { cpus: () => Array(8).fill({ model: 'unknown' }) });
    expect(machine).toMatchObject({
      cpuModel: 'Neoverse-V1',
      physicalCores: 8,
      instructionSets: ['asimd', 'asimdhp', 'asimddp', 'i8mm', 'bf16', 'sve'],
    });
  });

  it('of a Mac is asked of sysctl', async () => {
    const run = async (program: string) => (program === 'sysctl' ? APPLE_SYSCTL : noProgram());
    const machine = await setup(
      {},
      { platform: 'darwin', run, cpus: () => Array(8).fill({ model: 'Apple M2' }) },
    );
    expect(machine).toMatchObject({
      cpuModel: 'Apple M2',
      physicalCores: 8,
      instructionSets: ['asimd', 'asimdhp', 'asimddp', 'i8mm', 'bf16'],
    });
  });
});

describe('a container', () => {
  it('of cgroups v2 has the limits of its own group', async () => {
    const machine = await setup({
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/cpu.max': '250000 100000\n',
      '/sys/fs/cgroup/memory.max': '4294967296\n',
    });
    expect(machine).toMatchObject({ cores: 8, cpuLimit: 2.5, usableCores: 2, memoryBytes: 4 * GIB });
    expect(machine.devices[0]?.description).toBe('Intel(R) Xeon(R) Processor, 2 cores, 4.0 GiB memory');
  });

  it('of cgroups v2 has the tightest limit of the groups above it', async () => {
    const machine = await setup({
      '/proc/self/cgroup': '0::/kubepods/pod1/container2\n',
      '/sys/fs/cgroup/kubepods/pod1/container2/cpu.max': '400000 100000\n',
      '/sys/fs/cgroup/kubepods/pod1/cpu.max': '300000 100000\n',
      '/sys/fs/cgroup/kubepods/memory.max': '1073741824\n',
    });
    expect(machine).toMatchObject({ cpuLimit: 3, memoryBytes: GIB });
  });

  it('of cgroups v1 has the limits of its controllers', async () => {
    const machine = await setup({
      '/proc/self/cgroup': '4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n',
      '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': '536870912\n',
    });
    expect(machine).toMatchObject({ cpuLimit: 0.5, usableCores: 1, memoryBytes: GIB / 2 });
    expect(machine.devices[0]?.description).toContain(', 1 core, 0.5 GiB memory');
  });

  it('has the memory free that is left below its limit, caches counted as free', async () => {
    const v2 = await setup({
      '/proc/self/cgroup': '0::/\n',
      '/sys/fs/cgroup/memory.max': `${4 * GIB}\n`,
      '/sys/fs/cgroup/memory.current': `${3 * GIB}\n`,
      '/sys/fs/cgroup/memory.stat': `anon 1000\nfile ${2 * GIB}\ninactive_file ${GIB}\n`,
    });
    expect(v2.memoryFreeBytes).toBe(2 * GIB);
    const v1 = await setup({
      '/proc/self/cgroup': '4:memory:/docker/abc\n',
      '/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': `${4 * GIB}\n`,
      '/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes': `${3 * GIB}\n`,
      '/sys/fs/cgroup/memory/docker/abc/memory.stat': `inactive_file 5\ntotal_inactive_file ${GIB / 2}\n`,
    });
    expect(v1.memoryFreeBytes).toBe(1.5 * GIB);
  });
});

describe('GPUs', () => {
  /** nvidia-smi of a machine; text of an error where that is thrown. */
  const withSmi = (answer: (fields: string[]) => string) => {
    const asked: string[][] = [];
    const run = async (_: string, [query = '']: readonly string[]) => {
      const fields = query.replace('--query-gpu=', '').split(',');
      asked.push(fields);
      return answer(fields);
    };
    return { asked, probed: setup({}, { run }), sources: { run } };
  };
  const failing = (code: number, stdout: string) => () => {
    throw Object.assign(new Error('Command failed: nvidia-smi'), { code, stdout });
  };

  it('are listed by number, with every fact in one question', async () => {
    const { asked, probed } = withSmi(() => A100_CSV);
    const { devices, notices } = await probed;
    expect(asked).toEqual([
      [
        'index',
        'uuid',
        'name',
        'memory.total',
        'memory.free',
        'utilization.gpu',
        'driver_version',
        'compute_cap',
      ],
    ]);
    expect(notices).toEqual([]);
    expect(devices.slice(1).map(({ device }) => device)).toEqual(['cuda:0', 'cuda:1']);
    expect(devices[2]).toEqual({
      device: 'cuda:1',
      device_class: 'cuda',
      description: 'NVIDIA A100-SXM4-40GB, 40.0 GiB memory, driver 535.129.03',
      memory_total_bytes: 40 * GIB,
      memory_free_bytes: 12_288 * 2 ** 20,
      utilisation: 0.87,
      compute_capability: 8,
      uuid: 'GPU-7f6a3b52-0b1d-8c1e-53a9-0c4f6d9e2b11',
      driver: '535.129.03',
      probed_at: '2026-01-01T00:00:00.000Z',
    });
  });

  it('are asked again without what an old driver does not know', async () => {
    const { asked, probed } = withSmi((fields) =>
      fields.includes('compute_cap') ? failing(2, OLD_DRIVER_STDOUT)() : OLD_DRIVER_CSV,
    );
    expect((await probed).devices[1]).toMatchObject({
      device: 'cuda:0',
      compute_capability: null,
      driver: '418.67',
      utilisation: 0,
    });
    expect(asked).toHaveLength(2);
    expect((await probed).notices).toEqual([]);
  });

  it('may keep facts to themselves', async () => {
    const [, gpu] = (await withSmi(() => GB10_CSV).probed).devices;
    expect(gpu).toMatchObject({
      description: 'NVIDIA GB10, driver 580.95.05',
      memory_total_bytes: null,
      memory_free_bytes: null,
      compute_capability: 12.1,
    });
  });

  it('are absent without a word where there are none', async () => {
    for (const answer of [() => '', () => NO_DEVICES_STDOUT, failing(6, NO_DEVICES_STDOUT)]) {
      const { devices, notices } = await withSmi(answer).probed;
      expect(devices).toHaveLength(1);
      expect(notices).toEqual([]);
    }
  });

  it.each([
    ['is not there', 9, NO_DRIVER_STDOUT, "couldn't communicate with the NVIDIA driver"],
    ['does not match its library', 18, MISMATCH_STDOUT, 'Driver/library version mismatch'],
  ])('are absent with a notice where the driver %s', async (_, code, stdout, reason) => {
    const { devices, notices } = await withSmi(failing(code, stdout)).probed;
    expect(devices).toHaveLength(1);
    expect(notices).toEqual([expect.stringContaining(reason)]);
    expect(notices[0]).toMatch(/^nvidia-smi is there and failed: /);
  });

  it('are asked for what changes alone when probed again, and keep the last facts when they cannot be', async () => {
    const { asked, probed } = withSmi(() => T4_CSV);
    const machine = await probed;
    const later = { ...testSources(), now: () => NOW + 10_000 };
    const again = await reprobe(machine, {
      ...later,
      run: async (_, [query = '']) => {
        asked.push(query.split(','));
        return '0, 1024, 55\n';
      },
    });
    expect(asked.at(-1)).toEqual(['--query-gpu=index', 'memory.free', 'utilization.gpu']);
    expect(again.devices[1]).toEqual({
      ...machine.devices[1],
      memory_free_bytes: GIB,
      utilisation: 0.55,
      probed_at: '2026-01-01T00:00:10.000Z',
    });
    const lost = await reprobe(again, {
      ...later,
      now: () => NOW + 20_000,
      run: failing(9, NO_DRIVER_STDOUT),
    });
    expect(lost.devices[1]).toEqual(again.devices[1]);
    expect(lost.devices[0]?.probed_at).toBe('2026-01-01T00:00:20.000Z');
  });
});

describe('this very machine', () => {
  it('can be probed', async () => {
    const machine = await probeMachine();
    expect(machine.usableCores).toBeGreaterThanOrEqual(1);
    expect(machine.memoryBytes).toBeGreaterThan(0);
    expect(machine.devices[0]).toMatchObject({ device: 'cpu', device_class: 'cpu' });
  });
});
