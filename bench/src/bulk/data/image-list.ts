/** A list file of images: one absolute path a line, going through the samples again and again. */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** @param images not empty */
export async function writeImageList(path: string, images: readonly string[], rows: number): Promise<void> {
  await pipeline(Readable.from(pages(images, rows)), createWriteStream(path));
}

const PAGE = 10_000;

function* pages(images: readonly string[], rows: number): Generator<string> {
  for (let from = 0; from < rows; from += PAGE) {
    const length = Math.min(PAGE, rows - from);
    yield Array.from({ length }, (_, i) => `${images[(from + i) % images.length]}\n`).join('');
  }
}
