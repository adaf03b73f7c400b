/** Raw BullMQ as the yardstick of small requests: one process adds, one works off, the options are Remuda's own. */
export const BULLMQ_QUEUE = '{yardstick}';
export const BULLMQ_PREFIX = 'yardstick:queue';

/** As packages/core/src/queue/job-queue.ts has them. */
export const JOB_OPTIONS = {
  priority: 6,
  attempts: 5,
  backoff: { type: 'remuda' },
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
} as const;

export interface AddJob {
  url: string;
  count: number;
  /** Adds under way at once. */
  concurrency: number;
}

export interface AddAnswer {
  startedAt: number;
  /** CPU of the adding process over its adds, in microseconds: Redis and the worker are read from outside. */
  cpuMicros: number;
}
