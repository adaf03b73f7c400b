/** What the programs and files that a probe asks say on machines of several kinds, cut down to the fields that are read. */

/** Two threads of two sockets' cores each: a virtual machine of the Sapphire Rapids generation. */
export const INTEL_CPUINFO = [0, 1]
  .map(
    (core) => `processor	: ${core}
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
physical id	: 0
siblings	: 2
core id		: ${core}
cpu cores	: 2
flags		: fpu vme de pse tsc msr sse sse2 ss ht syscall nx ssse3 fma cx16 sse4_1 sse4_2 x2apic avx f16c rdrand avx2 bmi2 avx512f avx512dq avx_vnni avx512_vnni amx_int8
bugs		: spectre_v1 spectre_v2
power management:
`,
  )
  .join('\n');

/** One core with two threads. */
export const AMD_CPUINFO = [0, 1]
  .map(
    (thread) => `processor	: ${thread}
vendor_id	: AuthenticAMD
model name	: AMD EPYC 7B13
physical id	: 0
siblings	: 2
core id		: 0
cpu cores	: 1
flags		: fpu vme sse sse2 ht ssse3 fma cx16 sse4_1 sse4_2 avx f16c avx2 sha_ni vaes
TLB size	: 2560 4K pages
`,
  )
  .join('\n');

export const ARM_CPUINFO = [0, 1, 2, 3, 4, 5, 6, 7]
  .map(
    (cpu) => `processor	: ${cpu}
BogoMIPS	: 2100.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma asimddp sve i8mm bf16 dgh rng
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40
CPU revision	: 1
`,
  )
  .join('\n');

export const APPLE_SYSCTL = `hw.ncpu: 8
hw.physicalcpu: 8
hw.logicalcpu: 8
hw.optional.neon: 1
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_SME: 0
machdep.cpu.brand_string: Apple M2
`;

export const MEMINFO = `MemTotal:       32874684 kB
MemFree:         1200000 kB
MemAvailable:   24000000 kB
Buffers:          200000 kB
`;

export const A100_CSV = `0, GPU-2d1c9f0e-6a7b-4e1f-9c8d-5b3a1e7f4c20, NVIDIA A100-SXM4-40GB, 40960, 40537, 0, 535.129.03, 8.0
1, GPU-7f6a3b52-0b1d-8c1e-53a9-0c4f6d9e2b11, NVIDIA A100-SXM4-40GB, 40960, 12288, 87, 535.129.03, 8.0
`;

export const T4_CSV =
  '0, GPU-0a9b8c7d-1e2f-3a4b-5c6d-7e8f9a0b1c2d, Tesla T4, 15360, 15101, 0, 550.54.15, 7.5\n';

/** Memory that CPU and GPU share has no size of its own. */
export const GB10_CSV =
  '0, GPU-4b5c6d7e-8f90-a1b2-c3d4-e5f60718293a, NVIDIA GB10, [N/A], [N/A], 3, 580.95.05, 12.1\n';

export const OLD_DRIVER_STDOUT = 'Field "compute_cap" is not a valid field to query.\n\n';
export const OLD_DRIVER_CSV =
  '0, GPU-11223344-5566-7788-99aa-bbccddeeff00, Tesla K80, 11441, 11441, 0, 418.67\n';

export const NO_DEVICES_STDOUT = 'No devices were found\n';
export const NO_DRIVER_STDOUT =
  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n";
export const MISMATCH_STDOUT =
  'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n';
