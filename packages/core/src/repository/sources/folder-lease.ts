/**
 * One process at a time fetches a model into a cache folder. The lease is a file whose time is renewed while its owner
 * lives; others wait. It is taken over when its owner is dead, or when its time has stood still for a while.
 * Two owners at once, after a machine slept, do no harm: they write the same bytes to the same places.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, readlink, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { Clock } from '../../lifecycle/clock.js';

const BEAT_MS = 2000;
const LOOK_MS = 200;
/** Five beats: a busy process misses some. */
const STILL_MS = 10_000;

interface Seen {
  text: string;
  stamp: string;
}

export interface FolderLease {
  /** Safe to call twice. */
  release(): Promise<void>;
}

/**
 * @param path the lease file; its folder is made
 * @throws the signal's reason
 */
export async function takeLease(path: string, clock: Clock, signal: AbortSignal): Promise<FolderLease> {
  await mkdir(dirname(path), { recursive: true });
  const place = await thisPlace();
  const text = JSON.stringify({ pid: process.pid, place, nonce: randomBytes(8).toString('hex') });
  let last: Seen | undefined;
  let since = clock.now();
  for (;;) {
    signal.throwIfAborted();
    if (await created(path, text)) return held(path, text, clock);
    const seen = await look(path);
    if (seen?.stamp !== last?.stamp || seen?.text !== last?.text) since = clock.now();
    last = seen;
    if (seen && (isDead(seen.text, place) || clock.now() - since >= STILL_MS)) await remove(path, seen.text);
    else await pause(clock, LOOK_MS);
  }
}

function held(path: string, text: string, clock: Clock): FolderLease {
  let released = false;
  let cancel: () => void = () => undefined;
  const beat = (): void => {
    const now = new Date(clock.now());
    utimes(path, now, now)
      .catch(() => undefined)
      .finally(() => {
        if (!released) cancel = clock.after(BEAT_MS, beat);
      });
  };
  cancel = clock.after(BEAT_MS, beat);
  return {
    async release() {
      if (released) return;
      released = true;
      cancel();
      await remove(path, text);
    },
  };
}

async function created(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function look(path: string): Promise<Seen | undefined> {
  try {
    const { mtimeMs } = await stat(path);
    return { text: await readFile(path, 'utf8'), stamp: String(mtimeMs) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes the lease if it is the one that was seen; by rename, so that one of several wins. */
async function remove(path: string, text: string): Promise<void> {
  if ((await look(path))?.text !== text) return;
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  await rename(path, aside).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rm(aside, { force: true });
}

function isDead(text: string, place: string): boolean {
  try {
    const owner = JSON.parse(text) as { pid: number; place: string };
    return owner.place === place && !isAlive(owner.pid);
  } catch {
    // Its owner was about to write it; if it never does, its time stands still.
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Where a process number means one process: the machine, and on Linux its process namespace. */
async function thisPlace(): Promise<string> {
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '');
  return `${hostname()} ${namespace}`;
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
