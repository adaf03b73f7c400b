/**
 * A folder or glob of images as a list: its paths are written down once, in order, and the list is read from then on.
 * So the rows of a job stay what they are, whatever comes into the folder while it runs.
 */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { RemudaError } from '../../../errors.js';
import type { OpenedInput, OpenOptions } from '../bulk-input.js';
import { IMAGE_ENDINGS, isGlob } from '../detect.js';
import { globbedImages, ImageListing, imagesUnder } from './image-listing.js';
import { openList } from './open-list.js';

const LISTING = 'images.jsonl';

/** @throws RemudaError file_not_found, invalid_file, disk_full */
export async function openImages(options: OpenOptions): Promise<OpenedInput> {
  const { workFolder, read } = options;
  const folder = workFolder ?? (await mkdtemp(join(tmpdir(), 'remuda-images-')));
  const forget = async (): Promise<void> => {
    if (workFolder === undefined) await rm(folder, { recursive: true, force: true });
  };
  try {
    const { base, paths } = await imagesOf(resolve(options.path));
    const listing = new ImageListing(join(folder, LISTING));
    const rows = (await listing.rows()) ?? (await listing.write(paths));
    if (rows === 0) throw noImages(options.path);
    const list: OpenOptions = {
      path: listing.path,
      compression: 'none',
      read: { ...read, base: read.base ?? base },
    };
    return closingToo(await openList(list, rows), forget);
  } catch (error) {
    await forget();
    throw error;
  }
}

/** What they are relative to, and where they are. */
async function imagesOf(path: string): Promise<{ base: string; paths: AsyncIterable<string> }> {
  const facts = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new RemudaError('invalid_file', `${path} cannot be read: ${error.message}`, {}, { cause: error });
  });
  if (facts?.isDirectory()) return { base: path, paths: imagesUnder(path) };
  if (facts) return { base: dirname(path), paths: only(basename(path)) };
  if (isGlob(path)) return globbedImages(path);
  throw new RemudaError('file_not_found', `${path}: there is no such folder; check the path`);
}

async function* only(path: string): AsyncGenerator<string> {
  yield path;
}

function noImages(path: string): RemudaError {
  return new RemudaError(
    'invalid_file',
    `${path} holds no images; expected files that end with ${IMAGE_ENDINGS.map((ending) => `.${ending}`).join(' ')}`,
  );
}

function closingToo(opened: OpenedInput, forget: () => Promise<void>): OpenedInput {
  const close = opened.close.bind(opened);
  opened.close = async () => {
    await close();
    await forget();
  };
  return opened;
}
