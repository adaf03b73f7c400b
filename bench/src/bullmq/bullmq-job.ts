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
  /** Jobs that are added and worked off before anything is timed. */
  warmup: number;
  /** Adds under way at once. */
  concurrency: number;
  /** Processes whose CPU time counts too: Redis and the worker. */
  pids: readonly number[];
}

export interface AddAnswer {
  /** Unix milliseconds of the first timed add, and of the time when no job was left. */
  startedAt: number;
  endedAt: number;
  /** CPU of the adding process and of `pids` in that time, in microseconds. */
  cpuMicros: number;
}
