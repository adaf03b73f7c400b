/** Faults of the disk under an output, told so that one knows what to do: which path, how much is free, how it goes on. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RemudaError } from '../../errors.js';

/** No room: of the device, of a quota, or of what a process may write into one file. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** The error of a write to a path; what is no lack of room stays what it is. */
export async function diskFault(path: string, error: unknown): Promise<unknown> {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? '';
  if (!FULL.has(code)) return error;
  const free = await freeBytes(path);
  const left = free === null ? '' : `, ${readable(free)} free`;
  const [why, cure] =
    code === 'EFBIG'
      ? ['a file may not grow any further there', 'raise the limit on the size of files (ulimit -f)']
      : [`${code === 'EDQUOT' ? 'the quota is used up' : 'the disk is full'}${left}`, 'free space'];
  return new RemudaError(
    'disk_full',
    `${path}: ${why} (${code}). What was written before is kept: ${cure}, then resume the job (remuda batches resume ID)`,
    { path, free_bytes: free },
    { cause: error },
  );
}

/** The same, where nothing else is expected of the disk: every fault of it says which path cannot be written. */
export async function writeFault(path: string, error: unknown): Promise<unknown> {
  const fault = await diskFault(path, error);
  const { code, message } = fault as NodeJS.ErrnoException;
  if (fault instanceof RemudaError || code === undefined) return fault;
  return new RemudaError(
    'internal',
    `${path} cannot be written: ${message}; check the folder and who may write to it`,
    {},
    { cause: error },
  );
}

/** Does the work on a path. @throws RemudaError disk_full, or what the work throws */
export async function onDisk<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await diskFault(path, error);
  }
}

/** null: the system does not say. */
async function freeBytes(path: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dirname(path));
    return bavail * bsize;
  } catch {
    return null;
  }
}

function readable(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1_000)));
  const value = bytes / 1_000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}
