/** Entry of a raw BullMQ worker that does nothing with a job; says over IPC when it is ready. */
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { BULLMQ_PREFIX, BULLMQ_QUEUE } from './bullmq-job.js';

const { BENCH_REDIS = '', BENCH_CONCURRENCY = '64' } = process.env;

const redis = new Redis(BENCH_REDIS, { maxRetriesPerRequest: null, enableAutoPipelining: true });
const worker = new Worker(BULLMQ_QUEUE, async () => null, {
  connection: redis,
  prefix: BULLMQ_PREFIX,
  concurrency: Number(BENCH_CONCURRENCY),
  lockDuration: 30_000,
  drainDelay: 5,
  skipVersionCheck: true,
  settings: { backoffStrategy: () => 250 },
});
await worker.waitUntilReady();
process.on('SIGTERM', () => process.exit(0));
process.send?.({ type: 'ready', url: '' });
