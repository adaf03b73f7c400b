/**
 * The Redis that a fleet started here would use: REDIS_URL, else the one that `remuda up` has running, else whether one
 * could be started. Then its version, its eviction policy, its append-only file and how much memory is left.
 */
import { shownAddress } from '@remuda/core/store/redis-address';
import { whyNotInstallable } from '@remuda/infra/install-redis';
import { askRedis, type RedisTarget } from '@remuda/infra/redis-probe';
import { findRedisServer, readRecord } from '@remuda/infra/redis-process';
import { reasonOf } from '../cli-error.js';
import { megabytes } from '../terminal/figures.js';
import { type Finding, fail, ok, warn } from './finding.js';
import { redisTargets } from './redis-targets.js';

export interface RedisFacts {
  /** Of REDIS_URL. */
  given: string | undefined;
  /** Where a local server keeps its data. */
  redisFolder: string;
  env: NodeJS.ProcessEnv;
}

const ANSWER_MS = 3_000;
/** The oldest with everything that is used here. */
const OLDEST = [6, 2] as const;
/** Admission stops at this part of maxmemory. */
const ADMISSION_LIMIT = 0.8;
const ALARM = 0.7;

export async function checkRedis({ given, redisFolder, env }: RedisFacts): Promise<Finding[]> {
  const local = readRecord(redisFolder);
  const url = given ?? (local && local.pid > 0 ? `redis://127.0.0.1:${local.port}` : undefined);
  if (!url) return [startable(env)];
  const shown = shownAddress(url);
  try {
    const targets = await redisTargets(url);
    const found = await Promise.all(targets.map((target) => judgeServer(target, shown)));
    return found.flat();
  } catch (error) {
    // What `up` has left behind when it was killed is no trouble: the next start takes it over.
    if (!given) return [startable(env)];
    const remedy = 'Start that server or correct REDIS_URL; without it `remuda up` starts a local one.';
    return [fail('redis', `${shown} cannot be used: ${reasonOf(error)}`, remedy)];
  }
}

async function judgeServer(target: RedisTarget, shown: string): Promise<Finding[]> {
  const [info] = await askRedis(target, [['INFO']], ANSWER_MS);
  if (typeof info !== 'string') throw new Error(`INFO was answered with ${reasonOf(info)}`);
  return judgeInfo(info, shown);
}

function startable(env: NodeJS.ProcessEnv): Finding {
  const binary = findRedisServer(env.PATH);
  if (binary) return ok('redis', `none is running; \`remuda up\` starts ${binary}`);
  const obstacle = whyNotInstallable(env);
  if (!obstacle) return ok('redis', 'none is there; `remuda up` installs one with apt-get');
  return fail(
    'redis',
    `no REDIS_URL, no redis-server or valkey-server on the PATH, and none can be installed (${obstacle})`,
    'Debian, Ubuntu: sudo apt-get install -y redis-server. macOS: brew install redis. Else set REDIS_URL.',
  );
}

/** @param info answer of INFO, which needs no right that a hosted Redis might not give (CONFIG does) */
export function judgeInfo(info: string, url: string): Finding[] {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const number = (name: string): number => Number(field(name) ?? 0);
  return [
    judgeVersion(field('redis_version') ?? 'unknown', url),
    judgePolicy(field('maxmemory_policy')),
    judgePersistence(field('aof_enabled'), field('aof_last_write_status')),
    judgeMemory(number('used_memory'), number('maxmemory'), number('total_system_memory')),
  ];
}

function judgeVersion(version: string, url: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const recent = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  if (recent) return ok('redis', `Redis ${version} at ${url}`);
  return fail('redis', `Redis ${version} at ${url}, older than ${OLDEST.join('.')}`, 'Use a newer Redis.');
}

function judgePolicy(policy: string | undefined): Finding {
  if (policy === 'noeviction') return ok('redis policy', 'maxmemory-policy is noeviction');
  return fail(
    'redis policy',
    `maxmemory-policy is ${policy ?? 'not told'}: a full Redis would throw accepted requests away`,
    'redis-cli CONFIG SET maxmemory-policy noeviction, and the same line in redis.conf.',
  );
}

function judgePersistence(enabled: string | undefined, lastWrite: string | undefined): Finding {
  if (enabled === '1' && lastWrite !== 'err') return ok('redis AOF', 'the append-only file is on');
  if (enabled === '1') {
    return fail(
      'redis AOF',
      'the last write to the append-only file failed',
      'Look at the disk and the log of Redis.',
    );
  }
  return warn(
    'redis AOF',
    'the append-only file is off: a restart of Redis loses what was accepted',
    'redis-cli CONFIG SET appendonly yes, and the same line in redis.conf.',
  );
}

function judgeMemory(used: number, limit: number, machine: number): Finding {
  const most = limit > 0 ? limit : machine;
  const shown = `${megabytes(used)} of ${megabytes(most)} used`;
  if (limit === 0) {
    const detail = `${shown}; maxmemory is not set, so the machine is the limit`;
    if (machine === 0 || used < machine * ALARM) return ok('redis memory', detail);
    return warn(
      'redis memory',
      detail,
      'Set maxmemory, so that requests are refused before the machine is full.',
    );
  }
  const remedy = 'Raise maxmemory, add workers to drain the queues, or keep results for a shorter time.';
  if (used >= limit * ADMISSION_LIMIT) {
    return fail('redis memory', `${shown}: at 80 % new requests are refused`, remedy);
  }
  return used < limit * ALARM ? ok('redis memory', shown) : warn('redis memory', shown, remedy);
}
