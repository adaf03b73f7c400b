import { expect, test } from 'vitest';
import { probeProviders } from './probe-providers.js';

test('each provider is tried, and says why it does not load', async () => {
  const probes = await probeProviders();
  expect(probes.map(({ provider }) => provider)).toEqual([
    'cpu',
    'cuda',
    'tensorrt',
    'webgpu',
    'coreml',
    'dml',
  ]);
  expect(probes[0]).toEqual({ provider: 'cpu', ok: true, reason: null, ran: 'cpu' });
  for (const { ok, reason, ran, provider } of probes) {
    expect(ran).toBe(ok ? provider : null);
    expect(ok ? '' : reason).not.toBeNull();
    // One sentence, without the runtime's own sources.
    expect(reason ?? '').not.toMatch(/onnxruntime_src|\n/);
  }
});

test('a switch is tried by the other provider', async () => {
  expect(await probeProviders({ providers: ['cuda'], providerSwitch: { cuda: 'cpu' } })).toEqual([
    { provider: 'cuda', ok: true, reason: null, ran: 'cpu' },
  ]);
});

test('a process that does not answer in time is a reason', async () => {
  expect(await probeProviders({ providers: ['cpu'], timeoutMs: 1 })).toEqual([
    { provider: 'cpu', ok: false, reason: 'the process that tried it took longer than 1 ms', ran: null },
  ]);
});
