/**
 * The public face of kinds that take images: one input `image`, BYTES [N], each element an encoded image file. Turns
 * it into the model's float tensor; an image that cannot be read refuses its item alone, with its place.
 */
import { type RawTensor, type SignatureTensor, splitBytesElements } from '@remuda/schemas';
import { itemError, ModelLoadError } from '../errors.js';
import type { HarnessHooks, ModelSource, ModelTensors } from './harness.js';
import {
  decodeImage,
  type Fit,
  makeNormaliser,
  type PixelKwargs,
  type Pixels,
  UnreadableImageError,
  writePlanes,
} from './image-input.js';
import { asElements } from './onnx-types.js';

export const IMAGE_INPUT: SignatureTensor = {
  name: 'image',
  datatype: 'BYTES',
  shape: ['N'],
  batch_axis: 0,
  kind: 'image',
};

/** A tensor that users see, with one row for each image. */
export function publicTensor(
  name: string,
  datatype: SignatureTensor['datatype'],
  ...rest: (number | string)[]
): SignatureTensor {
  return { name, datatype, shape: ['N', ...rest], batch_axis: 0, kind: 'tensor' };
}

export interface ImagePlan {
  kwargs: PixelKwargs;
  fit: Fit;
  /** Width of the tensor, from that of its widest image. */
  tensorWidth(widest: number): number;
}

/** The preprocess hook: image files → FP32 [N, 3, height, width]. */
export function imagePreprocess(input: SignatureTensor, plan: ImagePlan): HarnessHooks['preprocess'] {
  const normaliser = makeNormaliser(plan.kwargs);
  return async (inputs) => {
    const files = splitBytesElements((inputs[0] as RawTensor).bytes);
    const decoded = await Promise.allSettled(files.map((file) => decodeImage(file, plan.kwargs, plan.fit)));
    const images: Pixels[] = [];
    for (const [index, result] of decoded.entries()) {
      if (result.status === 'fulfilled') images.push(result.value);
      else if (result.reason instanceof UnreadableImageError) {
        const message = `image ${index} could not be decoded: ${result.reason.message}`;
        return { error: itemError('item_rejected', message, { input: 'image', index }) };
      } else throw result.reason;
    }
    const { height } = plan.kwargs;
    const width = plan.tensorWidth(Math.max(1, ...images.map((image) => image.width)));
    const values = new Float32Array(images.length * 3 * height * width);
    images.forEach((image, row) => {
      writePlanes(image, normaliser, values, row * 3 * height * width, width);
    });
    const bytes = new Uint8Array(values.buffer);
    return {
      inputs: [{ name: input.name, datatype: 'FP32', shape: [images.length, 3, height, width], bytes }],
    };
  };
}

/** The model's only input and output, as image kinds need them. @throws ModelLoadError saying what does not fit */
export function imageModel(
  source: ModelSource,
  { inputs, outputs }: ModelTensors,
  outputRank: number,
): { input: SignatureTensor; output: SignatureTensor } {
  const [input] = inputs;
  const output = outputs.find((candidate) => candidate.shape.length === outputRank);
  const fits =
    inputs.length === 1 &&
    input?.datatype === 'FP32' &&
    input.shape.length === 4 &&
    [3, undefined].includes(fixed(input.shape[1]));
  if (!fits || output?.datatype !== 'FP32') {
    throw new ModelLoadError(
      `${source.modelId}: harness ${source.config.harness} needs one input FP32 [N, 3, H, W] and an output FP32 of ${outputRank} axes; the model has ${[...inputs, ...outputs].map(describe).join(', ')}`,
    );
  }
  return { input, output };
}

function fixed(dim: number | string | undefined): number | undefined {
  return typeof dim === 'number' ? dim : undefined;
}

function describe({ name, datatype, shape }: SignatureTensor): string {
  return `${name} ${datatype} [${shape.join(', ')}]`;
}

/** An FP32 tensor's numbers. */
export function floatsOf({ bytes }: RawTensor): Float32Array {
  return asElements('FP32', bytes) as Float32Array;
}

/** FP32 [N] from numbers. */
export function floatTensor(name: string, values: Float32Array, shape: number[]): RawTensor {
  return {
    name,
    datatype: 'FP32',
    shape,
    bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  };
}
