/** Providers: what runs where, and that the CPU never takes over without a word. */
import { beforeAll, describe, expect, test } from 'vitest';
import { probeProviders } from '../inference/probe-providers.js';
import { makeModels, sourceOf } from '../inference/test-models.fixture.js';
import { executionProviders, isCpuFallback, loadFailure, providerOf } from './onnx-loading.js';
import { openSession } from './onnx-session.js';
import { TINY_MODEL } from './tiny-model.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
});

const sourceOn = (device: string) => ({ ...sourceOf(repository, 'add'), device });
const pathOf = ({ folder }: { folder: string }) => `${folder}/model.onnx`;

async function providerThatRan(source: ReturnType<typeof sourceOn> & { allowCpuFallback?: boolean }) {
  const { session, provider } = await openSession(source, pathOf(source));
  await session.release();
  return provider;
}

describe('what is asked of the runtime', () => {
  test('is the provider of the device, or the one it is switched to', () => {
    expect(providerOf('cuda:1')).toEqual({ name: 'cuda', deviceId: 1 });
    expect(providerOf('cuda:1', { cuda: 'cpu' })).toEqual({ name: 'cpu', deviceId: 1 });
  });

  test('names a device only to those that know one, and CUDA behind TensorRT', () => {
    expect(executionProviders('cuda', 1)).toEqual([{ name: 'cuda', deviceId: 1 }]);
    expect(executionProviders('dml', 1)).toEqual([{ name: 'dml', deviceId: 1 }]);
    expect(executionProviders('webgpu', 0)).toEqual(['webgpu']);
    expect(executionProviders('tensorrt', 2)).toEqual([
      { name: 'tensorrt', deviceId: 2 },
      { name: 'cuda', deviceId: 2 },
    ]);
  });
});

describe('a fall-back to the CPU', () => {
  test('is refused by the runtime itself when it is told to, in words that are known here', async () => {
    const ort = await import('onnxruntime-node');
    const strict = { extra: { session: { disable_cpu_ep_fallback: '1' } } };
    const failure = await ort.InferenceSession.create(TINY_MODEL.bytes, strict).catch(
      (error: unknown) => error,
    );
    expect(isCpuFallback(failure)).toBe(true);
    expect(loadFailure(sourceOn('cuda:0'), 'model.onnx', failure).message).toBe(
      'add@1: model.onnx cannot be loaded: part of it would run on the CPU, since cuda cannot; allow the fall-back to the CPU, or use a file that it can run whole',
    );
  });

  test('happens where it is allowed, and is reported', async () => {
    // No build of the runtime has them all: coreml is for macOS, dml for Windows.
    for (const device of ['coreml', 'dml', 'cuda:0']) {
      const [probe] = await probeProviders({ providers: [providerOf(device).name] });
      if (probe?.ok) continue;
      await expect(providerThatRan(sourceOn(device))).rejects.toMatchObject({ code: 'model_load_failed' });
      expect(await providerThatRan({ ...sourceOn(device), allowCpuFallback: true })).toBe('cpu');
    }
  });

  test('does not hide a file that no provider can load', async () => {
    const source = { ...sourceOf(repository, 'corrupt'), device: 'coreml', allowCpuFallback: true };
    await expect(openSession(source, pathOf(source))).rejects.toThrow('not a valid ONNX file');
  });
});

test('a provider switch runs by another provider and says by which', async () => {
  expect(await providerThatRan({ ...sourceOn('cuda:0'), providerSwitch: { cuda: 'cpu' } })).toBe('cpu');
});

test('a GPU runs a model whole, where there is one', async (context) => {
  const gpus = ['cuda', 'webgpu'];
  const found = (await probeProviders({ providers: gpus })).filter((probe) => probe.ok);
  if (found.length === 0) context.skip(`none of ${gpus.join(', ')} loads on this machine`);
  for (const { provider } of found) expect(await providerThatRan(sourceOn(provider))).toBe(provider);
});
