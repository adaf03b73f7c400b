/**
 * From the bytes of image files to normalised float planes: the shared front of every kind that looks at images, and
 * the only home of sharp. Decoding and resizing happen in libvips' threads; what is left for this thread is one pass
 * over the pixels with a table of 256 values for each channel.
 */
import type { Sharp } from 'sharp';
import * as z from 'zod';

type Library = typeof import('sharp')['default'];
let library: Promise<Library> | undefined;

/** Imported with the first image: instance threads read definitions and decode nothing, and it costs them 100 ms. */
function sharpLibrary(): Promise<Library> {
  library ??= import('sharp').then(({ default: sharp }) => {
    // One thread for each image and no cache: many images are under way at once, and each is seen only once.
    sharp.concurrency(1);
    sharp.cache(false);
    return sharp;
  });
  return library;
}

/** Larger images are refused before they are decoded: a small file can claim a huge canvas. */
const MAX_PIXELS = 64_000_000;

const Triple = z.array(z.number()).length(3);

/** How pixels become numbers: the keys of model_kwargs that image kinds share. */
export const pixelKwargs = {
  height: z.int().min(1).max(8192).describe('Height the image is resized to.'),
  channels: z.enum(['rgb', 'bgr']).default('rgb').describe('Order of the planes.'),
  background: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, { error: 'a colour such as "#ffffff"' })
    .default('#ffffff')
    .describe('What transparent pixels are laid on.'),
  interpolation: z.enum(['nearest', 'linear', 'cubic', 'mitchell', 'lanczos2', 'lanczos3']).default('linear'),
  scale: z
    .number()
    .positive()
    .default(1 / 255)
    .describe('(pixel × scale - mean) / std'),
  mean: Triple.default([0, 0, 0]).describe('For each plane, in the order of `channels`.'),
  std: Triple.default([1, 1, 1]),
  pad_value: z.number().default(0).describe('Right of the image, in the normalised tensor.'),
};
export type PixelKwargs = z.infer<z.ZodObject<typeof pixelKwargs>>;

/** stretch: to exactly width × height. keep-ratio: to the height, at most `maxWidth` wide, squeezed beyond. */
export type Fit = { mode: 'stretch'; width: number } | { mode: 'keep-ratio'; maxWidth: number };

/** Interleaved RGB bytes. */
export interface Pixels {
  data: Uint8Array;
  width: number;
  height: number;
}

/** Bytes that no decoder takes for an image. */
export class UnreadableImageError extends Error {
  override readonly name = 'UnreadableImageError';
}

/** Decodes one image file and resizes it. @throws UnreadableImageError */
export async function decodeImage(file: Uint8Array, kwargs: PixelKwargs, fit: Fit): Promise<Pixels> {
  const sharp = await sharpLibrary();
  try {
    const image = sharp(file, { limitInputPixels: MAX_PIXELS, failOn: 'error' });
    const width = fit.mode === 'stretch' ? fit.width : await scaledWidth(image, kwargs.height, fit.maxWidth);
    const { data, info } = await image
      .flatten({ background: kwargs.background })
      .toColourspace('srgb')
      .resize(width, kwargs.height, { fit: 'fill', kernel: kwargs.interpolation })
      .raw()
      .toBuffer({ resolveWithObject: true });
    if (info.channels !== 3) throw new Error(`${info.channels} channels where 3 were expected`);
    return { data, width: info.width, height: info.height };
  } catch (error) {
    throw new UnreadableImageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function scaledWidth(image: Sharp, height: number, maxWidth: number): Promise<number> {
  const source = await image.metadata();
  return Math.max(1, Math.min(maxWidth, Math.ceil((height * source.width) / source.height)));
}

/** For each plane: the value of each byte, and where its byte stands among the three of a pixel. */
export interface Normaliser {
  tables: readonly [Float32Array, Float32Array, Float32Array];
  offsets: readonly [number, number, number];
  padValue: number;
}

/** Made once for each loaded model. */
export function makeNormaliser({ channels, scale, mean, std, pad_value }: PixelKwargs): Normaliser {
  const table = (plane: number): Float32Array =>
    Float32Array.from(
      { length: 256 },
      (_, byte) => (byte * scale - (mean[plane] as number)) / (std[plane] as number),
    );
  return {
    tables: [table(0), table(1), table(2)],
    offsets: channels === 'rgb' ? [0, 1, 2] : [2, 1, 0],
    padValue: pad_value,
  };
}

/**
 * Writes one image as planes [3, height, width] into `target` from `start` on, padded on the right.
 * @param width of the tensor; at least that of the image
 */
export function writePlanes(
  pixels: Pixels,
  { tables, offsets, padValue }: Normaliser,
  target: Float32Array,
  start: number,
  width: number,
): void {
  const plane = pixels.height * width;
  const [first, second, third] = tables;
  const [one, two, three] = offsets;
  const { data } = pixels;
  if (pixels.width < width) target.fill(padValue, start, start + 3 * plane);
  for (let y = 0, from = 0; y < pixels.height; y++) {
    let to = start + y * width;
    for (const end = to + pixels.width; to < end; to++, from += 3) {
      target[to] = first[data[from + one] as number] as number;
      target[to + plane] = second[data[from + two] as number] as number;
      target[to + 2 * plane] = third[data[from + three] as number] as number;
    }
  }
}
