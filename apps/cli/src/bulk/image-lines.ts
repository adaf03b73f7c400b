/** Images of this machine as a file of lines that can be sent: each with its name as custom_id, and its bytes as base64. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, relative } from 'node:path';
import { usageError } from '../cli-error.js';
import { imagesBelow } from './images-below.js';

export interface ImageLines {
  /** Name of the column, which is that of the model's input. */
  name: string;
  lines: AsyncIterable<string>;
  /** Of the images, in the same order. */
  paths: string[];
}

/** @param place a folder, a glob, or an image @param most the first so many of them */
export async function imageLines(
  place: string,
  inputName: () => Promise<string>,
  most = Number.POSITIVE_INFINITY,
): Promise<ImageLines> {
  const { paths: all, root } = await imagesOf(place);
  const paths = all.slice(0, most);
  if (paths.length === 0) throw usageError(`--in ${place}: there are no images.`);
  const name = await inputName();
  async function* lines(): AsyncGenerator<string> {
    for (const path of paths) {
      const bytes = await readFile(path);
      yield `${JSON.stringify({ custom_id: relative(root, path), [name]: bytes.toString('base64') })}\n`;
    }
  }
  return { name, lines: lines(), paths };
}

async function imagesOf(place: string): Promise<{ paths: string[]; root: string }> {
  const facts = await stat(place).catch(() => undefined);
  if (facts?.isFile()) return { paths: [place], root: dirname(place) };
  return imagesBelow(place, facts?.isDirectory() === true);
}
