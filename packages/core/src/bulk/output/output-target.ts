/**
 * Where an output goes: a path, or an object of S3. Looked at before anything runs, so that hours of work do not end at a
 * folder that is not there; and given the whole file at the end. Files of the server go through its file store.
 */
import { constants } from 'node:fs';
import { access, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { S3Source } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import type { Patience } from '../../repository/sources/patience.js';
import { S3Objects } from '../../repository/sources/s3-client.js';
import { parseSourceUri } from '../../repository/sources/source-uri.js';
import type { ReadSettings } from '../chunk.js';
import { exists, finishFile, outputExists } from './file-sink.js';
import { uploadFile } from './s3-upload.js';

export type OutputTarget =
  | { kind: 'path'; path: string }
  /** The prefix of the spec is the key of the object. */
  | { kind: 's3'; spec: S3Source };

export interface TargetOptions {
  /** Whether it may take the place of what is there. */
  overwrite: boolean;
  patience: Patience;
  signal: AbortSignal;
}

/**
 * @param uri a path, or s3://bucket/key, with ?region= and ?endpoint= as model sources have them
 * @throws RemudaError invalid_request
 */
export function parseTarget(uri: string, s3: ReadSettings['s3'] = {}): OutputTarget {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(uri)?.[1]?.toLowerCase();
  if (scheme === undefined) return { kind: 'path', path: resolve(uri) };
  if (scheme !== 's3') throw wrong(`"${scheme}://" cannot be written to: expected a path or s3://bucket/key`);
  const spec = s3Spec(uri);
  if (spec.prefix === '' || uri.endsWith('/'))
    throw wrong(`${uri} names no object: expected s3://bucket/key`);
  return { kind: 's3', spec: { ...s3, ...spec } };
}

function s3Spec(uri: string): S3Source {
  try {
    return parseSourceUri(uri) as S3Source;
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
}

function wrong(message: string): RemudaError {
  return new RemudaError('invalid_request', message, { path: 'output.uri' });
}

/** For people. */
export function targetText(target: OutputTarget): string {
  return target.kind === 'path' ? target.path : `s3://${target.spec.bucket}/${target.spec.prefix}`;
}

/** Whether a job may begin to write there. @throws RemudaError output_exists, invalid_request, source_unavailable */
export async function checkTarget(target: OutputTarget, options: TargetOptions): Promise<void> {
  if (target.kind === 'path') return checkPath(target.path, options.overwrite);
  await withObjects(target.spec, async (objects) => {
    const { patience, signal } = options;
    const there = await patience.retried(() => objects.exists(target.spec.prefix, signal), signal);
    if (there && !options.overwrite) throw outputExists(targetText(target));
  });
}

async function checkPath(path: string, overwrite: boolean): Promise<void> {
  const folder = dirname(path);
  if (!(await isFolder(folder))) {
    const hint = (await exists(folder).catch(() => true))
      ? 'it is no folder'
      : `make it first (mkdir -p ${folder})`;
    throw wrong(`${path}: the folder ${folder} cannot hold it: ${hint}`);
  }
  if (await isFolder(path)) throw wrong(`${path} is a folder: name a file in it`);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch {
    throw wrong(`${path}: no right to write into ${folder}`);
  }
  if (!overwrite && (await exists(path))) throw outputExists(path);
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/**
 * Gives the whole file of a job to its target; the file goes away. Safe to do again after a crash in the middle of it.
 * @throws RemudaError output_exists, disk_full, source_unavailable
 */
export async function deliver(
  partial: string,
  target: OutputTarget,
  options: TargetOptions & { progress?(bytes: number): void },
): Promise<void> {
  if (target.kind === 'path') return finishFile(partial, target.path, options);
  await withObjects(target.spec, (objects) => uploadFile(objects, target.spec.prefix, partial, options));
  await rm(partial);
}

/** Refusals of the bucket speak of the output: nothing is wrong with a model's source. */
async function withObjects(spec: S3Source, work: (objects: S3Objects) => Promise<void>): Promise<void> {
  const objects = await S3Objects.open(spec);
  try {
    await work(objects);
  } catch (error) {
    if (error instanceof RemudaError && error.code === 'source_invalid') throw wrong(error.message);
    throw error;
  } finally {
    objects.destroy();
  }
}
