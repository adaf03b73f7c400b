/**
 * The file behind a chunk, by what it was when the job began: another size or time of change is another file, and its
 * rows must not be mixed with those that were read before.
 */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { RemudaError } from '../../../errors.js';
import type { ChunkSource } from '../../chunk.js';

/** @throws RemudaError file_not_found */
export async function sourceOf(path: string): Promise<ChunkSource> {
  const found = await statOf(path).catch((cause: NodeJS.ErrnoException) => {
    throw new RemudaError('file_not_found', `${path} cannot be read: ${cause.message}`, { path }, { cause });
  });
  return { path, bytes: found.size, mtimeMs: found.mtimeMs };
}

/** @throws RemudaError source_unreadable */
export async function checkSource(source: ChunkSource): Promise<void> {
  const { path, bytes, mtimeMs } = source;
  const found = await statOf(path).catch((cause: NodeJS.ErrnoException) => {
    throw unreadable(path, `${path} cannot be read on this machine: ${cause.message}`, cause);
  });
  if (found.size === bytes && found.mtimeMs === mtimeMs) return;
  const seen = `${bytes} bytes of ${new Date(mtimeMs).toISOString()}`;
  const now = `${found.size} bytes of ${found.mtime.toISOString()}`;
  throw unreadable(
    path,
    `${path} is not the file that the job began with: it had ${seen}, and has ${now} here`,
  );
}

export function unreadable(path: string, message: string, cause?: unknown): RemudaError {
  return new RemudaError('source_unreadable', message, { path }, { cause });
}

async function statOf(path: string): Promise<Stats> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error('it is not a file');
  return found;
}
