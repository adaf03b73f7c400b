/** Measures raw BullMQ: CPU of both Node processes and of their private Redis for each job, and jobs a second. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { Redis } from 'ioredis';
import { runTask, startServer } from '../rig/node-process.js';
import { cpuMicros } from '../rig/proc-stat.js';
import { type AddAnswer, type AddJob, BULLMQ_PREFIX, BULLMQ_QUEUE } from './bullmq-job.js';

export interface BullmqRate {
  cpuMicrosPerJob: number;
  jobsPerS: number;
}

export interface BullmqOptions {
  count: number;
  /** Adds under way at once. */
  addConcurrency: number;
  /** Jobs that the worker holds at once. */
  workConcurrency: number;
}

const ADD = new URL('./add-main.js', import.meta.url);
const WORK = fileURLToPath(new URL('./work-main.js', import.meta.url));
const LOOK_EVERY_MS = 10;

export async function measureBullmq(options: BullmqOptions): Promise<BullmqRate> {
  const server = await startPrivateRedis();
  const folder = await mkdtemp(join(tmpdir(), 'remuda-bench-'));
  const worker = await startServer({
    script: WORK,
    env: { BENCH_REDIS: server.url, BENCH_CONCURRENCY: String(options.workConcurrency) },
    logFile: join(folder, 'bullmq.log'),
  });
  try {
    return await measure(options, server, worker.pid);
  } finally {
    await worker.stop();
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

async function measure(
  { count, addConcurrency }: BullmqOptions,
  server: { url: string; pid: number },
  workerPid: number,
): Promise<BullmqRate> {
  const before = cpuMicros(server.pid) + cpuMicros(workerPid);
  const job: AddJob = { url: server.url, count, concurrency: addConcurrency };
  const added = await runTask<AddAnswer>(ADD, job);
  await untilEmpty(server.url);
  const endedAt = Date.now();
  const used = cpuMicros(server.pid) + cpuMicros(workerPid) - before + added.cpuMicros;
  return { cpuMicrosPerJob: used / count, jobsPerS: count / ((endedAt - added.startedAt) / 1000) };
}

/** A job that is done is removed: when neither a waiting nor an active one is left, all are. */
async function untilEmpty(url: string): Promise<void> {
  const redis = new Redis(url);
  const key = (name: string): string => `${BULLMQ_PREFIX}:${BULLMQ_QUEUE}:${name}`;
  try {
    for (;;) {
      const [waiting, prioritized, active] = await Promise.all([
        redis.llen(key('wait')),
        redis.zcard(key('prioritized')),
        redis.llen(key('active')),
      ]);
      if (waiting + prioritized + active === 0) return;
      await sleep(LOOK_EVERY_MS);
    }
  } finally {
    redis.disconnect();
  }
}
