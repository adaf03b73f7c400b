/** Images of this machine as a file of lines that can be sent: each with its name as custom_id, and its bytes as base64. */
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { globbedImages, imagesUnder } from '@remuda/core/bulk/input/images/image-listing';
import { usageError } from '../cli-error.js';

export interface ImageLines {
  /** Name of the column, which is that of the model's input. */
  column: string;
  lines: AsyncIterable<string>;
}

/** @param place a folder, a glob, or an image @param most the first so many of them */
export async function imageLines(
  place: string,
  inputName: () => Promise<string>,
  most = Number.POSITIVE_INFINITY,
): Promise<ImageLines> {
  if ((await firstImages(place, 1)).length === 0) throw usageError(`--in ${place}: there are no images.`);
  const column = await inputName();
  const { names, base } = await imagesOf(place);
  async function* lines(): AsyncGenerator<string> {
    let count = 0;
    for await (const name of names) {
      const image = (await readFile(join(base, name))).toString('base64');
      yield `${JSON.stringify({ custom_id: name, [column]: image })}\n`;
      if (++count >= most) return;
    }
  }
  return { column, lines: lines() };
}

/** Paths of the first so many. */
export async function firstImages(place: string, most: number): Promise<string[]> {
  const { names, base } = await imagesOf(place);
  const found: string[] = [];
  for await (const name of names) if (found.push(join(base, name)) >= most) break;
  return found;
}

async function imagesOf(place: string): Promise<{ names: AsyncIterable<string>; base: string }> {
  const facts = await stat(place).catch(() => undefined);
  if (facts?.isFile()) return { names: only(basename(place)), base: dirname(place) };
  if (facts?.isDirectory()) return { names: imagesUnder(place), base: place };
  const { base, paths } = globbedImages(place);
  return { names: paths, base };
}

async function* only(name: string): AsyncGenerator<string> {
  yield name;
}
