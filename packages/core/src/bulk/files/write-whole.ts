/** Writes that are on the disk when they have returned, and disks that are full. */
import { type FileHandle, open, rm, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RemudaError } from '../../errors.js';

/** Makes a new file with all of the text. @throws where there is one; nothing is left behind then */
export async function writeWhole(path: string, text: string): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Writes every byte: one write may take fewer. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.byteLength - at);
    at += bytesWritten;
  }
}

/** Names that were made, renamed or removed in a folder last through a loss of power from then on. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** What the disk has said, as disk_full where it was that. @param written bytes that had come */
export async function explainDisk(error: unknown, path: string, written: number): Promise<unknown> {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const disk = await statfs(dirname(path)).catch(() => undefined);
  const free = disk === undefined ? '' : `; ${disk.bavail * disk.bsize} bytes are free`;
  return new RemudaError(
    'disk_full',
    `there is no room left on the disk of REMUDA_FILES after ${written} bytes of the file${free}: nothing of it was kept; make room and send it again`,
    {},
    { cause: error },
  );
}
