/**
 * Which folder REMUDA_FILES is. A marker in it holds a random id, and Redis holds the id of the folder that the fleet
 * uses: a process that has another one mounted is told so, before it looks for files that it cannot see, or writes some
 * that nobody else does. A Redis that was lost learns the id anew from whoever asks first.
 */
import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RemudaError } from '../../errors.js';
import type { Keys } from '../../store/keys.js';
import type { Redis } from '../../store/redis.js';
import { writeWhole } from './write-whole.js';

export const FOLDER_MARKER = '.remuda-files';

export interface FolderCheck {
  folder: string;
  redis: Pick<Redis, 'set' | 'get'>;
  keys: Pick<Keys, 'bulkFolder'>;
}

/** Id of the folder; it is made with its marker where it is not there yet. */
export async function folderIdentity(folder: string): Promise<string> {
  const marker = join(folder, FOLDER_MARKER);
  const found = await readMarker(marker);
  if (found !== undefined) return found;
  await mkdir(folder, { recursive: true });
  const draft = `${marker}.${randomUUID()}`;
  await writeWhole(draft, `${randomUUID()}\n`);
  // Of several processes that begin at once one has made it: link takes no name that is there.
  await link(draft, marker).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft, { force: true });
  return (await readMarker(marker)) as string;
}

/**
 * Whether this process sees the same folder as the others of its fleet; its id.
 * @throws RemudaError unsupported_feature where it does not
 */
export async function sameFolder({ folder, redis, keys }: FolderCheck): Promise<string> {
  const id = await folderIdentity(folder);
  const key = keys.bulkFolder();
  await redis.set(key, id, 'NX');
  const known = await redis.get(key);
  if (known === null || known === id) return id;
  throw new RemudaError(
    'unsupported_feature',
    `REMUDA_FILES of this process is another folder than that of the fleet (its ${FOLDER_MARKER} says ${id}, Redis says ${known}): ` +
      `mount the same folder everywhere; where it was replaced for good, delete the key ${key}`,
  );
}

async function readMarker(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
