/**
 * What is decided around loading an ONNX file, without the runtime itself: which provider a device means, what the
 * model's tensors are in the protocol's words, and what went wrong in words a person can act on.
 */
import type { SignatureTensor } from '@remuda/schemas';
import { ModelLoadError } from '../errors.js';
import { findBatchAxes } from './batch-axis.js';
import type { ModelSource, ModelTensors } from './harness.js';
import { protocolDatatype, UNSUPPORTED_ELEMENT } from './onnx-types.js';

/** A tensor as the runtime describes it; `type` and `shape` are absent where it is a sequence, map or optional. */
export interface RuntimeTensor {
  name: string;
  isTensor: boolean;
  type?: string;
  shape?: readonly (number | string)[];
}

/**
 * Provider of a device: cpu → cpu, cuda:1 → cuda with its deviceId.
 * @param providerSwitch see ModelSource
 */
export function providerOf(
  device: string,
  providerSwitch: Readonly<Record<string, string>> = {},
): { name: string; deviceId: number } {
  const [name = 'cpu', index = '0'] = device.split(':');
  return { name: providerSwitch[name] ?? name, deviceId: Number(index) };
}

/** An entry of the runtime's executionProviders. */
export type ExecutionProvider = string | { name: string; deviceId?: number };

/**
 * What is asked of the runtime for a provider. Only those that know a deviceId are given one: WebGPU refuses options
 * that it does not know. TensorRT leaves what it cannot do to CUDA, which is no fall-back to the CPU.
 */
export function executionProviders(name: string, deviceId: number): ExecutionProvider[] {
  switch (name) {
    case 'cuda':
    case 'dml':
      return [{ name, deviceId }];
    case 'tensorrt':
      return [
        { name, deviceId },
        { name: 'cuda', deviceId },
      ];
    default:
      return [name];
  }
}

const CPU_FALLBACK = /assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled/;

/** True for the runtime's refusal to run a part of a model on the CPU. */
export function isCpuFallback(error: unknown): boolean {
  return error instanceof Error && CPU_FALLBACK.test(error.message);
}

/**
 * A provider that this build lacks is an error: ONNX Runtime may drop it and run on the CPU without a word.
 * @throws ModelLoadError naming the providers there are
 */
export function requireProvider(source: ModelSource, provider: string, present: readonly string[]): void {
  if (present.includes(provider)) return;
  throw new ModelLoadError(
    `${source.modelId}: no execution provider "${provider}" for device ${source.device}; this build of ONNX Runtime has ${present.join(', ')}`,
    { provider, present },
  );
}

/** Signature of the model's own tensors. @throws ModelLoadError on a datatype or batch_axis that cannot be served */
export function modelTensors(
  source: ModelSource,
  inputs: readonly RuntimeTensor[],
  outputs: readonly RuntimeTensor[],
): ModelTensors {
  const declaredInputs = inputs.map((tensor) => declared(source, 'input', tensor));
  const declaredOutputs = outputs.map((tensor) => declared(source, 'output', tensor));
  const overrides = source.config.batch_axis;
  checkOverrides(source, [...declaredInputs, ...declaredOutputs], overrides);
  const axes = findBatchAxes(declaredInputs, declaredOutputs, overrides);
  return {
    inputs: declaredInputs.map((tensor) => described(tensor, axes.inputs.get(tensor.name) ?? null)),
    outputs: declaredOutputs.map((tensor) => described(tensor, axes.outputs.get(tensor.name) ?? null)),
  };
}

type Declared = Pick<SignatureTensor, 'name' | 'datatype' | 'shape'>;

function declared(
  source: ModelSource,
  role: string,
  { name, isTensor, type, shape }: RuntimeTensor,
): Declared {
  const datatype = isTensor && type ? protocolDatatype(type) : undefined;
  if (!datatype || !shape) {
    throw new ModelLoadError(
      `${source.modelId}: ${role} "${name}" is ${isTensor ? `of datatype ${type}` : 'not a tensor (a sequence, map or optional)'}, which cannot be served`,
      { tensor: name, type: type ?? null },
    );
  }
  return { name, datatype, shape: [...shape] };
}

/** Unnamed axes get a name of their own, so that no two of them look like one. */
function described(tensor: Declared, batchAxis: number | null): SignatureTensor {
  const shape = tensor.shape.map((dim, axis) => (dim === '' ? `${tensor.name}_dim_${axis}` : dim));
  return { ...tensor, shape, batch_axis: batchAxis, kind: 'tensor' };
}

function checkOverrides(
  source: ModelSource,
  tensors: readonly Declared[],
  overrides: Readonly<Record<string, number | null>>,
): void {
  for (const [name, axis] of Object.entries(overrides)) {
    const tensor = tensors.find((candidate) => candidate.name === name);
    if (!tensor) {
      throw new ModelLoadError(
        `${source.modelId}: batch_axis names "${name}"; the model has ${tensors.map((t) => t.name).join(', ')}`,
      );
    }
    if (axis !== null && axis >= tensor.shape.length) {
      throw new ModelLoadError(
        `${source.modelId}: batch_axis of "${name}" is ${axis}, but it has ${tensor.shape.length} axes`,
      );
    }
  }
}

/** Any error of creating a session as a ModelLoadError that names the file and the reason. */
export function loadFailure(source: ModelSource, path: string, error: unknown): ModelLoadError {
  if (error instanceof ModelLoadError) return error;
  const raw = error instanceof Error ? error.message : String(error);
  return new ModelLoadError(
    `${source.modelId}: ${path} cannot be loaded: ${reasonOf(raw, providerOf(source.device).name)}`,
    { file: path, device: source.device },
    { cause: error },
  );
}

const MOST_REASON_CHARACTERS = 400;

/** The runtime's text in words that a person can act on. */
export function reasonOf(raw: string, provider: string): string {
  if (CPU_FALLBACK.test(raw)) {
    return `part of it would run on the CPU, since ${provider} cannot; allow the fall-back to the CPU, or use a file that it can run whole`;
  }
  const opset = /Opset (\d+) is under development.*domain (\S+) is till opset (\d+)/s.exec(raw);
  if (opset) return `it needs opset ${opset[1]} of ${opset[2]}; this runtime supports up to ${opset[3]}`;
  const element = /^Unsupported data type: (\d+)/.exec(raw)?.[1];
  if (element)
    return `a tensor has datatype ${UNSUPPORTED_ELEMENT[element] ?? element}, which cannot be served`;
  if (/Protobuf parsing failed/.test(raw)) return 'it is not a valid ONNX file (protobuf parsing failed)';
  if (/Failed to load shared library/.test(raw)) {
    return `the libraries of provider ${provider} are not installed (they are not part of the npm package; see docs)`;
  }
  const withoutPrefix = raw
    // The runtime's own checks: where in its sources, what was checked, and at last the sentence.
    .replace(/^\/onnxruntime_src\/.* was false\. /s, '')
    .replace(/^Load model from .*? failed:/s, '')
    .replace(/\s+/g, ' ')
    .trim();
  return withoutPrefix.slice(0, MOST_REASON_CHARACTERS);
}
