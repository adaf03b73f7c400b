/**
 * Image files of single text lines in, text and a score out. The native run is the plain ONNX harness (FP32
 * [N, 3, H, W] → CTC scores [N, T, C]); rows share a run when their padded widths are equal.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { joinBytesElements, type RawTensor } from '@remuda/schemas';
import * as z from 'zod';
import { ModelLoadError } from '../../errors.js';
import { decodeGreedy } from '../ctc-decode.js';
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
  width_multiple: z.int().min(1).default(32).describe('Widths are padded up to a multiple of this.'),
  max_width: z.int().min(1).max(65_536).default(1280).describe('Wider lines are squeezed to this.'),
  dictionary: z.string().min(1).describe('File in the version folder: one character a line, in class order.'),
  blank_index: z
    .int()
    .min(0)
    .default(0)
    .describe('Class of the CTC blank; characters fill the other classes.'),
  append_space: z.boolean().default(false).describe('A space follows the last line of the dictionary.'),
  activation: z.enum(['none', 'softmax']).default('none').describe('softmax: the model gives logits.'),
});
type Kwargs = z.infer<typeof Kwargs>;

const kwargsOf = (source: ModelSource): Kwargs => source.config.model_kwargs as Kwargs;

/** Width of the warm-up rows: a line of some fifteen characters. */
const WARMUP_WIDTH = 320;

export const definition: HarnessDefinition = {
  kwargs: Kwargs,
  parameters: null,
  create: () =>
    new OnnxHarness({
      warmupSize: (source) => {
        const { height, max_width, width_multiple } = kwargsOf(source);
        const width = roundUp(Math.min(WARMUP_WIDTH, max_width), width_multiple);
        return (_input, axis) => [1, 3, height, width][axis];
      },
    }),
  async hooks(source, tensors) {
    const kwargs = kwargsOf(source);
    const { input, output } = imageModel(source, tensors, 3);
    const characters = await classesOf(source);
    requireClasses(source, characters.length, output.shape[2]);
    return {
      preprocess: imagePreprocess(input, {
        kwargs,
        fit: { mode: 'keep-ratio', maxWidth: kwargs.max_width },
        tensorWidth: (widest) => roundUp(widest, kwargs.width_multiple),
      }),
      async postprocess(outputs) {
        const scores = outputs.find((tensor) => tensor.name === output.name) as RawTensor;
        return { outputs: read(scores, characters, kwargs) };
      },
    };
  },
  publicTensors: () => ({
    inputs: [IMAGE_INPUT],
    outputs: [publicTensor('text', 'BYTES'), publicTensor('score', 'FP32')],
  }),
};

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** The character of each class; '' stands at the blank. */
async function classesOf(source: ModelSource): Promise<string[]> {
  const { dictionary, blank_index, append_space } = kwargsOf(source);
  const path = join(source.folder, dictionary);
  try {
    // Lines are not trimmed: one may be a blank of its own, such as U+3000.
    const characters = (await readFile(path, 'utf8')).replace(/\r?\n$/, '').split(/\r?\n/);
    if (append_space) characters.push(' ');
    characters.splice(blank_index, 0, '');
    return characters;
  } catch (cause) {
    throw new ModelLoadError(
      `${source.modelId}: dictionary ${path} cannot be read`,
      { file: path },
      { cause },
    );
  }
}

function requireClasses(source: ModelSource, known: number, classes: number | string | undefined): void {
  if (typeof classes !== 'number' || classes === known) return;
  throw new ModelLoadError(
    `${source.modelId}: the dictionary with blank${kwargsOf(source).append_space ? ' and space' : ''} has ${known} classes, the model has ${classes}`,
  );
}

function read(scores: RawTensor, characters: readonly string[], kwargs: Kwargs): RawTensor[] {
  const [rows = 0, steps = 0, classes = 0] = scores.shape;
  const all = floatsOf(scores);
  const rowScores = new Float32Array(rows);
  const texts = Array.from({ length: rows }, (_, row) => {
    const found = decodeGreedy({
      scores: all.subarray(row * steps * classes, (row + 1) * steps * classes),
      steps,
      classes,
      blank: kwargs.blank_index,
      logits: kwargs.activation === 'softmax',
    });
    rowScores[row] = found.score;
    return Buffer.from(found.classes.map((index) => characters[index] ?? '').join(''));
  });
  return [
    { name: 'text', datatype: 'BYTES', shape: [rows], bytes: joinBytesElements(texts) },
    floatTensor('score', rowScores, [rows]),
  ];
}
