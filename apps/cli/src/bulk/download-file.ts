/**
 * Brings a file of the API to its place here. It grows under a hidden name that holds the id of the file, so that a
 * download which was cut off goes on where it was (by Range) and never with the bytes of another file; the place itself
 * holds the whole file or none.
 */
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { BulkFile } from '@remuda/schemas';
import { UnreachableError } from '../api/api-client.js';
import { CliError, reasonOf } from '../cli-error.js';
import type { ApiBulk } from './api-bulk.js';

export interface DownloadOptions {
  overwrite: boolean;
  /** Told of the bytes that are here. */
  onBytes(bytes: number): void;
  /** Ends it; what is here stays for the next try. */
  stop?: AbortSignal | undefined;
}

/** Connections that may break one after the other without a byte between them. */
const MOST_BREAKS = 5;

export async function downloadFile(
  api: ApiBulk,
  file: Pick<BulkFile, 'id' | 'bytes'>,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = partialPath(path, file.id);
  let have = await sizeOf(partial);
  for (let breaks = 0; have < file.bytes || !existsSync(partial); ) {
    const broken = await append(api, file.id, partial, have, options).catch((error: unknown) => {
      if (options.stop?.aborted || !isBreak(error)) throw error;
      return error;
    });
    const now = await sizeOf(partial);
    breaks = now > have ? 0 : breaks + 1;
    if (breaks > MOST_BREAKS) throw new UnreachableError('the API, while a file came down,', broken);
    have = now;
  }
  await putInPlace(partial, path, file, options.overwrite);
}

/** Where it grows. */
export function partialPath(path: string, id: string): string {
  return join(dirname(path), `.${basename(path)}.${id}.partial`);
}

async function append(
  api: ApiBulk,
  id: string,
  partial: string,
  from: number,
  { onBytes, stop }: DownloadOptions,
): Promise<void> {
  const response = await api.content(id, from);
  // A server that gives everything whatever was asked for: begin anew.
  const start = response.status === 206 ? from : 0;
  let bytes = start;
  async function* counted(): AsyncGenerator<Uint8Array> {
    if (!response.body) return;
    for await (const part of Readable.fromWeb(response.body as ReadableStream)) {
      bytes += part.length;
      onBytes(bytes);
      yield part;
    }
  }
  const sink = createWriteStream(partial, start > 0 ? { flags: 'r+', start } : { flags: 'w' });
  await pipeline(counted, sink, { signal: stop });
}

/** A connection that broke, rather than an answer of the API or a disk of ours. */
function isBreak(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  return !(error instanceof CliError) && !/^E(NOSPC|DQUOT|ACCES|PERM|ROFS|IO)$/.test(codeOf(error));
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}

async function putInPlace(
  partial: string,
  path: string,
  { bytes }: Pick<BulkFile, 'bytes'>,
  overwrite: boolean,
): Promise<void> {
  const here = await sizeOf(partial);
  if (here !== bytes) {
    await rm(partial, { force: true });
    throw new CliError(`The API gave ${here} bytes of a file of ${bytes}; it was thrown away. Try again.`);
  }
  if (!overwrite && existsSync(path))
    throw new CliError(`${path} is there since; the download is kept as ${partial}.`);
  const handle = await open(partial, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(partial, path).catch((error) => {
    throw new CliError(`${partial} cannot be put in its place: ${reasonOf(error)}`);
  });
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
