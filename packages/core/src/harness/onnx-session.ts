/**
 * Native sessions: the only file that imports onnxruntime-node, and only when one is opened, so that a process that
 * merely reads definitions never maps the library. What runs on the CPU in place of the device's provider is an error
 * here, unless the source allows it: the runtime itself would do so without a word.
 */
import type * as Ort from 'onnxruntime-node';
import type { ModelSource } from './harness.js';
import {
  type ExecutionProvider,
  executionProviders,
  isCpuFallback,
  loadFailure,
  providerOf,
  reasonOf,
  requireProvider,
} from './onnx-loading.js';
import { TINY_MODEL } from './tiny-model.js';

export type Runtime = typeof Ort;
export type Session = Ort.InferenceSession;
export type SessionTensor = Ort.Tensor;
export type SessionResults = Ort.InferenceSession.ReturnType;

export interface OpenedSession {
  ort: Runtime;
  session: Session;
  /** What really runs it: cpu, cuda, …; cuda+cpu where part of it runs on the CPU. */
  provider: string;
}

interface SessionNeeds {
  threads: number;
  spin: boolean;
}

/** How to run a model: by which provider, and whether the CPU may take over what that cannot do. */
interface Attempt {
  name: string;
  deviceId: number;
  mayMix: boolean;
}

/** @throws ModelLoadError naming the file and why; nothing is left behind */
export async function openSession(source: ModelSource, path: string): Promise<OpenedSession> {
  const ort = await import('onnxruntime-node');
  const { config, device, providerSwitch, allowCpuFallback = false } = source;
  const { name, deviceId } = providerOf(device, providerSwitch);
  const present = presentProviders(ort);
  if (!allowCpuFallback) requireProvider(source, name, present);
  const { spin } = config.model_kwargs;
  const threads = config.intra_op_threads;
  const needs = { threads, spin: typeof spin === 'boolean' ? spin : threads > 1 };
  const onCpu: Attempt = { name: 'cpu', deviceId: 0, mayMix: false };
  let attempt: Attempt | undefined = present.includes(name) ? { name, deviceId, mayMix: false } : onCpu;
  for (;;) {
    try {
      const session = await create(ort, path, attempt, needs);
      return { ort, session, provider: attempt.mayMix ? `${name}+cpu` : attempt.name };
    } catch (error) {
      if (!allowCpuFallback || attempt.name === 'cpu') throw loadFailure(source, path, error);
      attempt = isCpuFallback(error) && !attempt.mayMix ? { ...attempt, mayMix: true } : onCpu;
    }
  }
}

/** The execution providers of this build. That one is here does not say that it loads. */
function presentProviders(ort: Runtime): string[] {
  return ort.listSupportedBackends().map((backend) => backend.name);
}

function create(
  ort: Runtime,
  model: string | Uint8Array,
  attempt: Attempt,
  needs: SessionNeeds,
): Promise<Session> {
  const options = sessionOptions(attempt, needs);
  return typeof model === 'string'
    ? ort.InferenceSession.create(model, options)
    : ort.InferenceSession.create(model, options);
}

/** `extra` reaches the runtime's own session configuration, but the common typing does not know its keys. */
function sessionOptions(
  { name, deviceId, mayMix }: Attempt,
  { threads, spin }: SessionNeeds,
): Ort.InferenceSession.SessionOptions {
  const strict = name !== 'cpu' && !mayMix ? { disable_cpu_ep_fallback: '1' } : {};
  return {
    executionProviders: executionProviders(name, deviceId) as ExecutionProvider[] & string[],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    // DirectML refuses sessions that plan their memory ahead.
    ...(name === 'dml' ? { enableMemPattern: false } : {}),
    // Fatal only: what goes wrong comes back as an error of ours; the runtime's own lines would break the JSON log.
    logSeverityLevel: 4,
    extra: { session: { intra_op: { allow_spinning: spin ? '1' : '0' }, ...strict } },
  };
}

/** What came of trying a provider in this process. */
export interface ProviderTrial {
  /** Providers of this build, loadable or not. */
  present: string[];
  /** Runs a tiny model all by itself. */
  ok: boolean;
  /** Why not; null when ok. */
  reason: string | null;
}

/** Loads and runs a tiny model by one provider. A native library that crashes takes this process with it. */
export async function tryProvider(name: string): Promise<ProviderTrial> {
  const ort = await import('onnxruntime-node');
  const present = presentProviders(ort);
  if (!present.includes(name)) {
    return { present, ok: false, reason: `this build of ONNX Runtime has ${present.join(', ')}` };
  }
  try {
    const attempt = { name, deviceId: 0, mayMix: false };
    const session = await create(ort, TINY_MODEL.bytes, attempt, { threads: 1, spin: false });
    const x = new ort.Tensor('float32', Float32Array.of(1, 2), [1, 2]);
    const results = await session.run({ [TINY_MODEL.input]: x });
    await session.release();
    const sum = (results[TINY_MODEL.output] as Ort.Tensor).data as Float32Array;
    return sum.join() === '2,4'
      ? { present, ok: true, reason: null }
      : { present, ok: false, reason: `1 + 1, 2 + 2 gave ${sum.join()}` };
  } catch (error) {
    const raw = error instanceof Error ? error.message : String(error);
    return { present, ok: false, reason: reasonOf(raw, name) };
  }
}
