/**
 * Entry of the process that adds jobs to a raw BullMQ queue: single adds, as many under way as asked for. It times the
 * whole, to the end of the last job, and counts the CPU of all three processes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { serveTask } from '../rig/node-process.js';
import { cpuMicros } from '../rig/proc-stat.js';
import { type AddAnswer, type AddJob, BULLMQ_PREFIX, BULLMQ_QUEUE, JOB_OPTIONS } from './bullmq-job.js';

const LOOK_EVERY_MS = 10;

serveTask<AddJob, AddAnswer>(async ({ url, count, warmup, concurrency, pids }) => {
  const redis = new Redis(url, { enableAutoPipelining: true, maxRetriesPerRequest: null });
  const queue = new Queue(BULLMQ_QUEUE, {
    connection: redis,
    prefix: BULLMQ_PREFIX,
    streams: { events: { maxLen: 100 } },
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  await queue.waitUntilReady();
  await addAll(queue, 'warmup', warmup, concurrency);
  await untilEmpty(redis);
  const cpuSoFar = (): number => [...pids, process.pid].reduce((sum, pid) => sum + cpuMicros(pid), 0);
  const before = cpuSoFar();
  const startedAt = Date.now();
  await addAll(queue, 'job', count, concurrency);
  await untilEmpty(redis);
  return { startedAt, endedAt: Date.now(), cpuMicros: cpuSoFar() - before };
});

async function addAll(queue: Queue, name: string, count: number, concurrency: number): Promise<void> {
  const x = Array.from({ length: 16 }, (_, i) => i / 16);
  let sent = 0;
  const drive = async (): Promise<void> => {
    while (sent < count) await queue.add('request', { x }, { ...JOB_OPTIONS, jobId: `${name}-${sent++}` });
  };
  await Promise.all(Array.from({ length: concurrency }, drive));
}

/** A job that is done is removed: when neither a waiting nor an active one is left, all are. */
async function untilEmpty(redis: Redis): Promise<void> {
  const key = (name: string): string => `${BULLMQ_PREFIX}:${BULLMQ_QUEUE}:${name}`;
  for (;;) {
    const [waiting, prioritized, active] = await Promise.all([
      redis.llen(key('wait')),
      redis.zcard(key('prioritized')),
      redis.llen(key('active')),
    ]);
    if (waiting + prioritized + active === 0) return;
    await sleep(LOOK_EVERY_MS);
  }
}
