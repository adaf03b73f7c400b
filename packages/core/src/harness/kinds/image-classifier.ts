/**
 * Image files in, one of a list of labels out. The native run is the plain ONNX harness; around it stand the image
 * preprocessing and the reading of the scores, in the runner's main thread, item by item.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { joinBytesElements, type RawTensor } from '@remuda/schemas';
import * as z from 'zod';
import { ModelLoadError } from '../../errors.js';
import type { HarnessDefinition, ModelSource } from '../harness.js';
import { pixelKwargs } from '../image-input.js';
import {
  floatsOf,
  floatTensor,
  IMAGE_INPUT,
  imageModel,
  imagePreprocess,
  publicTensor,
} from '../image-tensors.js';
import { OnnxHarness, OnnxKwargs } from './onnx.js';

const Kwargs = OnnxKwargs.extend({
  ...pixelKwargs,
  width: z.int().min(1).max(8192).describe('Width of the tensor.'),
  resize: z
    .enum(['stretch', 'keep-ratio-pad-right'])
    .default('stretch')
    .describe('keep-ratio-pad-right: to the height, at most `width` wide, the rest padded.'),
  labels: z
    .union([z.array(z.string()).min(1), z.string().min(1)])
    .describe('Name of each class in order; or a file in the version folder with one name a line.'),
  activation: z
    .enum(['none', 'softmax'])
    .default('none')
    .describe('softmax: the model gives logits. none: it gives probabilities.'),
});
type Kwargs = z.infer<typeof Kwargs>;

const kwargsOf = (source: ModelSource): Kwargs => source.config.model_kwargs as Kwargs;

export const definition: HarnessDefinition = {
  kwargs: Kwargs,
  parameters: null,
  create: () =>
    new OnnxHarness({
      warmupSize: (source) => (_input, axis) => [1, 3, kwargsOf(source).height, kwargsOf(source).width][axis],
    }),
  async hooks(source, tensors) {
    const kwargs = kwargsOf(source);
    const { input, output } = imageModel(source, tensors, 2);
    const labels = (await labelsOf(source)).map((label) => Buffer.from(label));
    requireLabels(source, labels.length, output.shape[1]);
    return {
      preprocess: imagePreprocess(input, {
        kwargs,
        fit:
          kwargs.resize === 'stretch'
            ? { mode: 'stretch', width: kwargs.width }
            : { mode: 'keep-ratio', maxWidth: kwargs.width },
        tensorWidth: () => kwargs.width,
      }),
      async postprocess(outputs) {
        const scores = outputs.find((tensor) => tensor.name === output.name) as RawTensor;
        return { outputs: classify(scores, labels, kwargs.activation) };
      },
    };
  },
  publicTensors(tensors, source) {
    const { output } = imageModel(source, tensors, 2);
    return {
      inputs: [IMAGE_INPUT],
      outputs: [
        publicTensor('label', 'BYTES'),
        publicTensor('score', 'FP32'),
        publicTensor('probabilities', 'FP32', output.shape[1] ?? 'classes'),
      ],
    };
  },
};

async function labelsOf(source: ModelSource): Promise<string[]> {
  const { labels } = kwargsOf(source);
  if (typeof labels !== 'string') return labels;
  const path = join(source.folder, labels);
  try {
    return (await readFile(path, 'utf8')).trimEnd().split(/\r?\n/);
  } catch (cause) {
    throw new ModelLoadError(
      `${source.modelId}: labels file ${path} cannot be read`,
      { file: path },
      { cause },
    );
  }
}

function requireLabels(source: ModelSource, labels: number, classes: number | string | undefined): void {
  if (typeof classes !== 'number' || classes === labels) return;
  throw new ModelLoadError(
    `${source.modelId}: model_kwargs.labels has ${labels} names, the model has ${classes} classes`,
  );
}

/** Scores [N, C] → label, score and probabilities of each row. */
function classify(
  scores: RawTensor,
  labels: readonly Uint8Array[],
  activation: Kwargs['activation'],
): RawTensor[] {
  const [rows = 0, classes = 0] = scores.shape;
  const given = floatsOf(scores);
  const probabilities = activation === 'softmax' ? softmax(given, classes) : given;
  const best = new Float32Array(rows);
  const names: Uint8Array[] = [];
  for (let row = 0; row < rows; row++) {
    let top = 0;
    for (let c = 1; c < classes; c++) {
      if ((probabilities[row * classes + c] as number) > (probabilities[row * classes + top] as number))
        top = c;
    }
    best[row] = probabilities[row * classes + top] as number;
    names.push(labels[top] ?? Buffer.from(String(top)));
  }
  return [
    { name: 'label', datatype: 'BYTES', shape: [rows], bytes: joinBytesElements(names) },
    floatTensor('score', best, [rows]),
    floatTensor('probabilities', probabilities, [rows, classes]),
  ];
}

function softmax(scores: Float32Array, classes: number): Float32Array {
  const out = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += classes) {
    const row = scores.subarray(start, start + classes);
    const top = row.reduce((a, b) => Math.max(a, b));
    let sum = 0;
    for (const score of row) sum += Math.exp(score - top);
    for (let c = 0; c < classes; c++) out[start + c] = Math.exp((row[c] as number) - top) / sum;
  }
  return out;
}
