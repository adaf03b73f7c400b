/**
 * Brings an input that lies elsewhere, or comes through a pipe, into a file of the job: written beside it and renamed
 * when all of it is there. A transfer that breaks off goes on where it was, by this process or the next.
 */
import { createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { S3Source } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import { download } from '../../repository/sources/download.js';
import { HttpRequests } from '../../repository/sources/http-requests.js';
import { httpFile } from '../../repository/sources/http-source.js';
import { Patience, type PatienceOptions } from '../../repository/sources/patience.js';
import { openS3File } from '../../repository/sources/s3-source.js';
import type { SourceFile } from '../../repository/sources/source-files.js';
import { parseSourceUri } from '../../repository/sources/source-uri.js';
import { type AllowedAddresses, NOTHING_ALLOWED } from '../../webhooks/address-rules.js';
import { writeFault } from '../output/disk-faults.js';
import { createCheckedFetch } from './checked-fetch.js';

export interface FetchOptions {
  /** Path of the file that it becomes. */
  to: string;
  signal: AbortSignal;
  /** @param total bytes; null: not told */
  onProgress?(bytes: number, total: number | null): void;
  /** Addresses beside the public ones that may be reached; null: any. Default: none. */
  allowed?: AllowedAddresses | null;
  /** Where the buckets of s3:// are, unless the address says so: ?region=…&endpoint=… */
  s3?: { endpoint?: string; region?: string };
  patience?: PatienceOptions;
}

export interface FetchedInput {
  path: string;
  bytes: number;
}

/**
 * @param from http(s)://…, s3://bucket/key, or a stream such as stdin. What has been fetched before is not fetched again
 * @throws RemudaError file_not_found, source_unavailable (what has come is kept), source_invalid, invalid_request, disk_full
 */
export async function fetchInput(from: string | Readable, options: FetchOptions): Promise<FetchedInput> {
  const { to } = options;
  try {
    await mkdir(dirname(to), { recursive: true });
    if (typeof from !== 'string') return await spool(from, options);
    const there = await stat(to).catch(() => null);
    return there ? { path: to, bytes: there.size } : await fetchRemote(from, options);
  } catch (error) {
    options.signal.throwIfAborted();
    throw await told(to, await writeFault(to, error));
  }
}

async function spool(stream: Readable, { to, signal, onProgress }: FetchOptions): Promise<FetchedInput> {
  const partial = `${to}.partial`;
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      onProgress?.(bytes, null);
      done(null, chunk);
    },
  });
  try {
    await pipeline(stream, counted, createWriteStream(partial), { signal });
  } catch (error) {
    // Of a stream nothing can be had again.
    await rm(partial, { force: true });
    throw error;
  }
  await settle(partial, to);
  return { path: to, bytes };
}

async function fetchRemote(uri: string, options: FetchOptions): Promise<FetchedInput> {
  const { to, signal, onProgress } = options;
  const patience = new Patience(options.patience);
  const { file, close } = await remoteFile(uri, options, patience);
  try {
    const target = { partial: `${to}.partial`, state: `${to}.state` };
    const onBytes = (bytes: number, total: number | null): void => onProgress?.(bytes, total);
    const { size } = await download(file, target, { patience, onBytes, signal, hashed: false });
    await settle(target.partial, to);
    return { path: to, bytes: size };
  } finally {
    await close();
  }
}

interface RemoteFile {
  file: SourceFile;
  close(): Promise<void>;
}

async function remoteFile(uri: string, options: FetchOptions, patience: Patience): Promise<RemoteFile> {
  const { allowed = NOTHING_ALLOWED, s3 } = options;
  if (/^s3:\/\//i.test(uri)) {
    const spec: S3Source = { ...s3, ...(parseSourceUri(uri) as S3Source) };
    if (spec.prefix === '')
      throw new RemudaError('invalid_request', `${uri}: expected s3://bucket/key of one object`);
    const { file, close } = await openS3File(spec, patience);
    return { file, close: async () => close() };
  }
  if (!/^https?:\/\//i.test(uri) || !URL.canParse(uri))
    throw new RemudaError(
      'invalid_request',
      `"${uri}" cannot be fetched; expected http(s)://host/path or s3://bucket/key`,
    );
  const { fetch, close } = createCheckedFetch(allowed);
  const { origin } = new URL(uri);
  const requests = new HttpRequests({ headers: {}, origin, secrets: () => undefined, fetch, patience });
  return { file: httpFile(uri, 'input', null, null, requests), close };
}

async function settle(partial: string, to: string): Promise<void> {
  const handle = await open(partial, 'r+');
  await handle.sync().finally(() => handle.close());
  await rename(partial, to);
}

/** Messages of model sources in the words of files, and what is not there as that. */
async function told(to: string, error: unknown): Promise<unknown> {
  if (!(error instanceof RemudaError)) return error;
  const { code, message, details, cause } = error;
  if (code === 'source_unavailable' && cause instanceof RemudaError)
    return new RemudaError(
      code,
      `${cause.message}; what has come is kept: resume the job to go on there`,
      details,
      { cause },
    );
  if (code === 'source_invalid' && /answered (404|410)\b|no such (bucket|object)/.test(message))
    return new RemudaError(
      'file_not_found',
      message.replace('; check the address, or publish the file', '; check the address'),
      details,
      { cause },
    );
  if (code === 'internal' && cause !== undefined) return writeFault(to, cause);
  return error;
}
