/**
 * The harness of plain ONNX models, and the base of every kind that runs one. Its native session comes from
 * onnx-session.ts, the home of onnxruntime-node.
 *
 * session.run blocks its thread; each OnnxHarness therefore lives in an instance thread of a runner. Input bytes are
 * read during the run and may be reused once it has settled. File 8 of the tour: tensors in, run, tensors out.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { joinBytesElements, type RawTensor, type SignatureTensor, splitBytesElements } from '@remuda/schemas';
import * as z from 'zod';
import { InferenceError, itemError, ModelLoadError, ModelNotLoadedError } from '../../errors.js';
import type {
  HarnessBatch,
  HarnessDefinition,
  HarnessHooks,
  HarnessStatus,
  InferenceHarness,
  ModelSource,
  ModelTensors,
} from '../harness.js';
import { loadFailure, modelTensors } from '../onnx-loading.js';
import {
  type OpenedSession,
  openSession,
  type Runtime,
  type SessionResults,
  type SessionTensor,
} from '../onnx-session.js';
import { asElements, type NumericArray, runtimeDatatype } from '../onnx-types.js';
import { type KnownSize, warmupBatches } from '../warmup-batch.js';

/** What every kind built on ONNX understands in model_kwargs. */
export const OnnxKwargs = z.strictObject({
  spin: z
    .boolean()
    .optional()
    .describe(
      'Let idle threads of a session wait busily. Default: with more than one thread (off, two threads lose much throughput); a single thread never waits.',
    ),
});

export interface OnnxHarnessOptions {
  /** Sizes of open axes that this kind knows, for the warm-up. */
  warmupSize?(source: ModelSource): KnownSize;
}

interface Loaded extends OpenedSession {
  source: ModelSource;
  tensors: ModelTensors;
}

export class OnnxHarness implements InferenceHarness {
  readonly #options: OnnxHarnessOptions;
  #loaded: Loaded | undefined;
  #modelId = '(not loaded)';
  #runs = 0;

  constructor(options: OnnxHarnessOptions = {}) {
    this.#options = options;
  }

  get modelId(): string {
    return this.#modelId;
  }

  get isLoaded(): boolean {
    return this.#loaded !== undefined;
  }

  async load(source: ModelSource): Promise<ModelTensors> {
    await this.unload();
    this.#modelId = source.modelId;
    const path = join(source.folder, source.modelFile ?? source.config.model_path);
    await requireFile(source, path);
    const opened = await openSession(source, path);
    try {
      const { inputMetadata, outputMetadata } = opened.session;
      const tensors = modelTensors(source, inputMetadata, outputMetadata);
      this.#loaded = { ...opened, source, tensors };
      return tensors;
    } catch (error) {
      await opened.session.release();
      throw loadFailure(source, path, error);
    }
  }

  async warmUp(): Promise<void> {
    const { source, tensors } = this.#required();
    const knownSize = this.#options.warmupSize?.(source);
    for (const { batch, guessed } of warmupBatches(tensors.inputs, source.config, knownSize)) {
      try {
        await this.run(batch);
      } catch (error) {
        if (!guessed) throw error;
      }
    }
  }

  async run(batch: HarnessBatch): Promise<RawTensor[]> {
    const loaded = this.#required();
    const feeds = toFeeds(loaded, batch);
    let results: SessionResults;
    try {
      results = await loaded.session.run(feeds);
    } catch (error) {
      throw new InferenceError('inference_failed', runFailure(error), {}, { cause: error });
    } finally {
      for (const tensor of Object.values(feeds)) tensor.dispose();
    }
    this.#runs++;
    return loaded.tensors.outputs.map((output) => fromResult(output, results[output.name], batch.rows));
  }

  async unload(): Promise<void> {
    const loaded = this.#loaded;
    this.#loaded = undefined;
    await loaded?.session.release();
  }

  status(): HarnessStatus {
    return {
      state: this.#loaded ? 'loaded' : 'unloaded',
      provider: this.#loaded?.provider ?? null,
      runs: this.#runs,
    };
  }

  #required(): Loaded {
    if (!this.#loaded) throw new ModelNotLoadedError(this.#modelId);
    return this.#loaded;
  }
}

async function requireFile(source: ModelSource, path: string): Promise<void> {
  try {
    await access(path);
  } catch (cause) {
    throw new ModelLoadError(
      `${source.modelId}: the model file ${path} is missing`,
      { file: path },
      { cause },
    );
  }
}

function toFeeds({ ort, tensors }: Loaded, batch: HarnessBatch): Record<string, SessionTensor> {
  const feeds: Record<string, SessionTensor> = {};
  for (const input of batch.inputs) feeds[input.name] = toTensor(ort, input);
  const known = tensors.inputs.map((input) => input.name);
  const extra = batch.inputs.filter((input) => !known.includes(input.name)).map((input) => input.name);
  const missing = known.filter((name) => !(name in feeds));
  // The runtime itself takes extra feeds without a word.
  if (extra.length > 0 || missing.length > 0) {
    throw new InferenceError(
      'inference_failed',
      `the model takes ${known.join(', ')}${extra.length ? `; not ${extra.join(', ')}` : ''}${missing.length ? `; missing ${missing.join(', ')}` : ''}`,
      { extra, missing },
    );
  }
  return feeds;
}

function toTensor(ort: Runtime, { datatype, shape, bytes }: RawTensor): SessionTensor {
  if (datatype === 'BYTES') return new ort.Tensor('string', splitBytesElements(bytes).map(toText), shape);
  type Type = 'float32';
  return new ort.Tensor(
    runtimeDatatype(datatype) as Type,
    asElements(datatype, bytes) as Float32Array,
    shape,
  );
}

function toText(element: Uint8Array): string {
  return Buffer.from(element.buffer, element.byteOffset, element.byteLength).toString('utf8');
}

function fromResult(output: SignatureTensor, result: SessionTensor | undefined, rows: number): RawTensor {
  if (!result) throw new InferenceError('inference_failed', `the model gave no output "${output.name}"`);
  const { name, datatype, batch_axis: axis } = output;
  const shape = [...result.dims];
  if (axis !== null && shape[axis] !== rows) {
    throw new InferenceError(
      'output_mismatch',
      `output "${name}" has ${shape[axis]} rows (axis ${axis} of [${shape.join(', ')}]), expected ${rows}`,
      { output: name, axis, got: shape[axis], expected: rows },
    );
  }
  const bytes =
    datatype === 'BYTES' ? textBytes(result.data as string[]) : bytesOf(result.data as NumericArray);
  result.dispose();
  return { name, datatype, shape, bytes };
}

function textBytes(elements: readonly string[]): Uint8Array {
  return joinBytesElements(elements.map((text) => Buffer.from(text, 'utf8')));
}

function bytesOf(data: NumericArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The runtime's text without its C++ signatures and source paths. */
function runFailure(error: unknown): string {
  const raw = error instanceof Error ? error.message : String(error);
  return raw
    .replace(/\/onnxruntime_src\/\S+ .*?\) (?=[A-Za-z])/s, '')
    .replace(/\s+/g, ' ')
    .trim();
}

const textDecoder = new TextDecoder('utf-8', { fatal: true });

/** Strings of ONNX Runtime end at a NUL and are UTF-8: what cannot pass unchanged is refused, item by item. */
const textHooks: HarnessHooks = {
  async preprocess(inputs) {
    for (const input of inputs) {
      const wrong = input.datatype === 'BYTES' ? unfitText(input) : undefined;
      if (wrong !== undefined) return { error: itemError('item_rejected', wrong, { input: input.name }) };
    }
    return { inputs };
  },
};

function unfitText({ name, bytes }: RawTensor): string | undefined {
  for (const [index, element] of splitBytesElements(bytes).entries()) {
    if (element.includes(0))
      return `input "${name}", element ${index}: text for an ONNX model cannot hold NUL`;
    try {
      textDecoder.decode(element);
    } catch {
      return `input "${name}", element ${index}: text for an ONNX model must be valid UTF-8`;
    }
  }
  return undefined;
}

export const definition: HarnessDefinition = {
  kwargs: OnnxKwargs,
  parameters: null,
  create: () => new OnnxHarness(),
  hooks: async (_source, tensors) =>
    tensors.inputs.some((input) => input.datatype === 'BYTES') ? textHooks : {},
};
