/** Which execution providers really load here: each is tried with a tiny model in a process of its own. */
import type { Machine } from '@remuda/core/devices/machine';
import { type ProviderProbe, probeProviders } from '@remuda/core/inference/probe-providers';
import { type Finding, fail, ok, warn } from './finding.js';

const CUDA_REMEDY =
  'Install the CUDA libraries for ONNX Runtime (docs/devices.md), or leave it: workers then use the CPU.';

export async function checkProviders(
  machine: Machine,
  probe: () => Promise<ProviderProbe[]> = probeProviders,
): Promise<Finding[]> {
  const probes = await probe();
  const loads = probes.filter((provider) => provider.ok).map(({ provider }) => provider);
  const wanted = new Set(machine.devices.map(({ device_class }) => device_class));
  const missing = probes.filter(({ ok: works, provider }) => !works && wanted.has(provider));
  return [
    loads.length > 0
      ? ok('providers', `${loads.join(', ')} ${loads.length === 1 ? 'loads' : 'load'}`)
      : fail('providers', 'no execution provider loads', 'Install again (rm -r node_modules, npm start).'),
    ...missing
      .filter(({ provider }) => provider !== 'cpu')
      .map(({ provider, reason }) =>
        warn(`provider ${provider}`, `there is a device for it, but: ${reason}`, CUDA_REMEDY),
      ),
  ];
}
