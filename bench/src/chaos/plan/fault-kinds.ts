/**
 * Every kind of fault that the chaos suite knows: whom it strikes, how long it lasts, in which variants. Durations are
 * given in lock times, so that a plan is as hard on a fleet with long locks as on one with short ones.
 */

/** What a fault strikes; `store`: all that use Redis. */
export type FaultTarget = 'worker' | 'api' | 'process' | 'store' | 'sinks' | 'queue';

export interface FaultKind {
  /** For people. */
  about: string;
  strikes: FaultTarget;
  /** How often it comes among the others. Default 1. */
  weight?: number;
  /** Shortest and longest, in lock times. Default: it is over at once. */
  locks?: readonly [least: number, most: number];
  /** One is drawn. */
  variants?: readonly string[];
  /** What it ends is started again while the plan goes on. */
  lingers?: boolean;
}

const KINDS = {
  worker_kill: { about: 'kill -9 of a worker, started again', strikes: 'worker', weight: 2, lingers: true },
  worker_term: { about: 'SIGTERM to a worker, started again', strikes: 'worker', lingers: true },
  worker_stop_short: {
    about: 'a worker and its runners stand still, shorter than its locks',
    strikes: 'worker',
    locks: [0.2, 0.6],
  },
  worker_stop_long: {
    about: 'a worker and its runners stand still, longer than its locks',
    strikes: 'worker',
    weight: 2,
    locks: [2.2, 3],
  },
  runner_kill: { about: 'kill -9 of the runners of a worker', strikes: 'worker', weight: 2 },
  runner_stop: { about: 'the runners of a worker stand still', strikes: 'worker', locks: [0.3, 1.5] },
  api_kill: { about: 'kill -9 of an API process, started again', strikes: 'api', weight: 2, lingers: true },
  api_term: { about: 'SIGTERM to an API process, started again', strikes: 'api', lingers: true },
  api_stop: { about: 'an API process stands still', strikes: 'api', locks: [0.3, 1.5] },
  redis_kill: { about: 'kill -9 of Redis, started again', strikes: 'store', locks: [0.1, 0.7] },
  redis_term: { about: 'SIGTERM to Redis, started again', strikes: 'store', locks: [0.1, 0.7] },
  redis_stop: { about: 'Redis stands still', strikes: 'store', locks: [0.2, 1.2] },
  client_kill: {
    about: 'CLIENT KILL',
    strikes: 'store',
    weight: 2,
    variants: ['normal', 'pubsub', 'one'],
  },
  client_pause: {
    about: 'CLIENT PAUSE',
    strikes: 'store',
    locks: [0.2, 1],
    variants: ['all', 'write'],
  },
  latency: {
    about: 'each packet between a process and Redis is late',
    strikes: 'process',
    locks: [0.5, 1.5],
    variants: ['20', '80', '250'],
  },
  cut: {
    about: 'the connections of a process to Redis are cut, in the middle of what they carry',
    strikes: 'process',
    weight: 2,
    locks: [0, 0.5],
  },
  partition: {
    about: 'nothing passes between a process and Redis, and no connection breaks',
    strikes: 'process',
    locks: [0.5, 2.5],
  },
  memory_full: {
    about: 'maxmemory reached',
    strikes: 'store',
    locks: [0.3, 1],
    variants: ['all', 'admission'],
  },
  disk_full: {
    about: 'the disk of the append-only file is full',
    strikes: 'store',
    locks: [0.3, 0.8],
    variants: ['everysec', 'always'],
  },
  clock_offset: {
    about: 'a worker comes back with a clock that is off',
    strikes: 'worker',
    variants: ['-90000', '-5000', '5000', '90000'],
    lingers: true,
  },
  old_jobs: { about: 'records and jobs of an older build lie in Redis', strikes: 'queue' },
  upgrade: {
    about: 'a process of the older build is replaced by one of this build',
    strikes: 'process',
    lingers: true,
  },
  sink_slow: { about: 'webhook sinks answer late', strikes: 'sinks', locks: [0.5, 1.5] },
  sink_500: { about: 'webhook sinks answer with 500', strikes: 'sinks', locks: [0.5, 1.5] },
  sink_410: { about: 'a webhook sink says that it is gone', strikes: 'sinks', locks: [0.5, 1] },
  sink_reset: { about: 'webhook sinks break the connection off', strikes: 'sinks', locks: [0.5, 1.5] },
} as const satisfies Record<string, FaultKind>;

export type FaultName = keyof typeof KINDS;

export const FAULT_KINDS: Readonly<Record<FaultName, FaultKind>> = KINDS;
export const FAULT_NAMES = Object.keys(KINDS) as FaultName[];
