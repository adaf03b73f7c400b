/** Measures raw BullMQ: CPU of both Node processes and of their private Redis for each job, and jobs a second. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { runTask, startServer } from '../rig/node-process.js';
import type { AddAnswer, AddJob } from './bullmq-job.js';

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
/** As Remuda's own side is warmed. */
const WARMUP_SHARE = 0.1;

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
  const { startedAt, endedAt, cpuMicros } = await runTask<AddAnswer>(ADD, {
    url: server.url,
    count,
    warmup: Math.ceil(count * WARMUP_SHARE),
    concurrency: addConcurrency,
    pids: [server.pid, workerPid],
  } satisfies AddJob);
  return { cpuMicrosPerJob: cpuMicros / count, jobsPerS: count / ((endedAt - startedAt) / 1000) };
}
