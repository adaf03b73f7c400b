/** Faults of Redis itself: its process, its clients, its memory, its disk. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultName } from '../plan/fault-kinds.js';
import { STORE } from '../watch/idle-watch.js';
import type { Strike } from './site.js';

/** Strikes all: nobody is expected to get on meanwhile. */
function onStore(strike: Strike): Strike {
  return (fault, site) => site.calm.hurting([STORE], () => strike(fault, site));
}

const kill: Strike = async ({ locks }, { fleet: { redis }, lockMs }) => {
  await redis.kill9();
  await sleep(locks * lockMs);
  await redis.restart();
};

const terminate: Strike = async ({ locks }, { fleet: { redis }, lockMs }) => {
  redis.markDown();
  redis.signal('SIGTERM');
  await sleep(locks * lockMs);
  await redis.restart();
};

const standStill: Strike = async ({ locks }, { fleet: { redis }, lockMs }) => {
  redis.signal('SIGSTOP');
  await sleep(locks * lockMs);
  redis.signal('SIGCONT');
  await redis.untilWritable();
};

const killClients: Strike = async ({ variant, number }, { fleet: { redis } }) => {
  if (variant !== 'one') {
    await redis.redis.call('CLIENT', 'KILL', 'TYPE', variant, 'SKIPME', 'yes');
    return;
  }
  const list = (await redis.redis.call('CLIENT', 'LIST')) as string;
  const ids = [...list.matchAll(/^id=(\d+) .*name=remuda-(?!chaos )/gm)].map((match) => match[1] as string);
  const id = ids[number % Math.max(1, ids.length)];
  if (id !== undefined) await redis.redis.call('CLIENT', 'KILL', 'ID', id);
};

const pauseClients: Strike = async ({ variant, locks }, { fleet: { redis }, lockMs }) => {
  const ms = Math.round(locks * lockMs);
  await redis.redis.call('CLIENT', 'PAUSE', ms, variant.toUpperCase());
  await sleep(ms);
  await redis.untilWritable();
};

/** all: nothing more is written. admission: the API lets nothing in, and workers go on with what room is left. */
const fillMemory: Strike = async ({ variant, locks }, { fleet: { redis }, lockMs }) => {
  const used = Number(/used_memory:(\d+)/.exec(await redis.redis.info('memory'))?.[1] ?? 0);
  const most = Math.round(variant === 'all' ? used * 0.9 : used * 1.15);
  await redis.redis.config('SET', 'maxmemory', most);
  await sleep(locks * lockMs);
  await redis.redis.config('SET', 'maxmemory', 0);
  await redis.untilWritable();
};

/**
 * Under everysec Redis answers MISCONF until its write goes through; under always it ends, and is started again when
 * there is room. What it has in memory alone must not die with it: faults of Redis wait for each other.
 */
const fillDisk: Strike = async ({ variant, locks }, { fleet: { redis }, lockMs }) => {
  const { pid } = redis;
  await redis.redis.config('SET', 'appendfsync', variant);
  redis.disk.fill(pid);
  await sleep(locks * lockMs);
  const ended = await hasEnded(pid);
  redis.disk.empty(pid);
  if (ended) {
    redis.markDown();
    await redis.restart();
  }
  await redis.untilWritable();
  await redis.redis.config('SET', 'appendfsync', redis.fsync);
};

async function hasEnded(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

export const REDIS_FAULTS: Partial<Record<FaultName, Strike>> = {
  redis_kill: onStore(kill),
  redis_term: onStore(terminate),
  redis_stop: onStore(standStill),
  client_kill: onStore(killClients),
  client_pause: onStore(pauseClients),
  memory_full: onStore(fillMemory),
  disk_full: onStore(fillDisk),
};
