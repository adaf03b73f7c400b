/** Recorded outputs of machines and containers of several kinds. */
import { describe, expect, it } from 'vitest';
import { type ProbeSources, probeMachine } from './probe.js';

const GIB = 2 ** 30;
const noProgram = () =>
  Promise.reject(Object.assign(new Error('spawn nvidia-smi ENOENT'), { code: 'ENOENT' }));

/** A machine of 8 cores and 32 GiB with the given files. */
function setup(files: Record<string, string> = {}, sources: Partial<ProbeSources> = {}) {
  return probeMachine({
    readText: async (path) => files[path],
    run: noProgram,
    cpus: () => Array(8).fill({ model: 'Intel(R) Xeon(R) Processor ' }),
    availableParallelism: () => 8,
    totalmem: () => 32 * GIB,
    ...sources,
  });
}

describe('a machine without limits', () => {
  it('is its processor, cores and memory, and one CPU device', async () => {
    expect(await setup()).toEqual({
      cpuModel: 'Intel(R) Xeon(R) Processor',
      cores: 8,
      cpuLimit: null,
      usableCores: 8,
      memoryBytes: 32 * GIB,
      devices: [
        {
          device: 'cpu',
          device_class: 'cpu',
          description: 'Intel(R) Xeon(R) Processor, 8 cores, 32.0 GiB memory',
        },
      ],
      notices: [],
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
});

describe('GPUs', () => {
  const withOutput = (output: string) => setup({}, { run: async () => output });

  it('are asked of nvidia-smi', async () => {
    const calls: unknown[] = [];
    const run = async (...call: unknown[]): Promise<string> => {
      calls.push(call);
      return '';
    };
    await setup({}, { run });
    expect(calls).toEqual([
      ['nvidia-smi', ['--query-gpu=index,name,memory.total,driver_version', '--format=csv,noheader,nounits']],
    ]);
  });

  it('are listed by number', async () => {
    const { devices } = await withOutput(
      '0, NVIDIA A100-SXM4-40GB, 40960, 535.129.03\n1, NVIDIA A100-SXM4-40GB, 40960, 535.129.03\n',
    );
    expect(devices.slice(1)).toEqual([
      {
        device: 'cuda:0',
        device_class: 'cuda',
        description: 'NVIDIA A100-SXM4-40GB, 40.0 GiB memory, driver 535.129.03',
      },
      {
        device: 'cuda:1',
        device_class: 'cuda',
        description: 'NVIDIA A100-SXM4-40GB, 40.0 GiB memory, driver 535.129.03',
      },
    ]);
  });

  it('may keep their memory to themselves', async () => {
    const { devices } = await withOutput('0, NVIDIA GB10, [N/A], 580.95.05\n');
    expect(devices[1]?.description).toBe('NVIDIA GB10, driver 580.95.05');
  });

  it('are absent without a word where the list is empty', async () => {
    expect(await withOutput('No devices were found\n')).toMatchObject({ notices: [] });
    expect((await withOutput('')).devices).toHaveLength(1);
  });

  it('are absent with a notice where the driver is not there', async () => {
    const stdout =
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n";
    const failure = Object.assign(new Error('Command failed: nvidia-smi'), { code: 9, stdout });
    const machine = await setup({}, { run: () => Promise.reject(failure) });
    expect(machine.devices).toHaveLength(1);
    expect(machine.notices).toEqual([
      "nvidia-smi is there and failed: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
    ]);
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
