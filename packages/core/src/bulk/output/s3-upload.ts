/**
 * A file to S3 in parts, each tried again by itself: memory holds one part, whatever the size of the file. The object
 * appears when all of it is there; an upload that fails leaves nothing that costs.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Patience } from '../../repository/sources/patience.js';
import type { S3Objects } from '../../repository/sources/s3-client.js';

export interface UploadOptions {
  patience: Patience;
  signal: AbortSignal;
  /** Bytes of a part; default 16 MB, more where there would be more than 10,000 of them. S3 takes no less than 5 MB. */
  partBytes?: number;
  /** Told bytes sent so far. */
  progress?(bytes: number): void;
}

const PART_BYTES = 16 * 2 ** 20;
const MOST_PARTS = 10_000;

/** @throws RemudaError source_unavailable (worth another try), source_invalid */
export async function uploadFile(
  objects: S3Objects,
  key: string,
  path: string,
  options: UploadOptions,
): Promise<void> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const partBytes = Math.max(options.partBytes ?? PART_BYTES, Math.ceil(size / MOST_PARTS));
    if (size > partBytes) return await uploadParts(objects, key, file, size, partBytes, options);
    const bytes = await readAt(file, 0, size);
    await retried(objects, key, options, (signal) => objects.put(key, bytes, signal));
    options.progress?.(size);
  } finally {
    await file.close();
  }
}

async function uploadParts(
  objects: S3Objects,
  key: string,
  file: FileHandle,
  size: number,
  partBytes: number,
  options: UploadOptions,
): Promise<void> {
  const id = await retried(objects, key, options, (signal) => objects.beginUpload(key, signal));
  try {
    const etags: string[] = [];
    for (let from = 0; from < size; from += partBytes) {
      const bytes = await readAt(file, from, Math.min(partBytes, size - from));
      const part = etags.length + 1;
      etags.push(
        await retried(objects, key, options, (signal) => objects.uploadPart(key, id, part, bytes, signal)),
      );
      options.progress?.(from + bytes.length);
    }
    await retried(objects, key, options, (signal) => objects.completeUpload(key, id, etags, signal));
  } catch (error) {
    // What failed is told; that its parts could not be taken away too would only hide it.
    await objects.abortUpload(key, id).catch(() => {});
    throw error;
  }
}

function retried<T>(
  objects: S3Objects,
  key: string,
  { patience, signal }: UploadOptions,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return patience.retried(() => {
    const attempt = new AbortController();
    const both = AbortSignal.any([signal, attempt.signal]);
    return patience.within(objects.address(key), call(both), () => attempt.abort());
  }, signal);
}

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, offset + done);
    if (bytesRead === 0) throw new Error('the file was cut off while it was uploaded');
    done += bytesRead;
  }
  return bytes;
}
