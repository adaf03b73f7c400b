/** Entry of the process that adds jobs to a raw BullMQ queue: single adds, as many under way as asked for. */
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { serveTask } from '../rig/node-process.js';
import { type AddAnswer, type AddJob, BULLMQ_PREFIX, BULLMQ_QUEUE, JOB_OPTIONS } from './bullmq-job.js';

serveTask<AddJob, AddAnswer>(async ({ url, count, concurrency }) => {
  const redis = new Redis(url, { enableAutoPipelining: true, maxRetriesPerRequest: null });
  const queue = new Queue(BULLMQ_QUEUE, {
    connection: redis,
    prefix: BULLMQ_PREFIX,
    streams: { events: { maxLen: 100 } },
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  await queue.waitUntilReady();
  const x = Array.from({ length: 16 }, (_, i) => i / 16);
  const startedAt = Date.now();
  const cpu = process.cpuUsage();
  let sent = 0;
  const drive = async (): Promise<void> => {
    while (sent < count) await queue.add('request', { x }, { ...JOB_OPTIONS, jobId: `job-${sent++}` });
  };
  await Promise.all(Array.from({ length: concurrency }, drive));
  const { user, system } = process.cpuUsage(cpu);
  return { startedAt, cpuMicros: user + system };
});
