/** A load for a time rather than a number of requests, whose callers wait for the result and look at the clock. */
import { runTask } from '../rig/node-process.js';

export interface TimedLoadJob {
  /** Base address of the API. */
  url: string;
  model: string;
  /** Image files in turn, each as a raw image/png body. */
  files: string[];
  seconds: number;
  /** Of the request (timeout_ms), and of the caller: a later result is worth nothing to him. null: he has time. */
  deadlineMs: number | null;
  arrivals:
    | { kind: 'closed'; callers: number }
    /** Poisson: independent callers, who come whether or not those before have been answered. */
    | { kind: 'open'; perS: number };
}

export interface TimedLoadAnswer {
  sent: number;
  /** Would have needed more connections than the generator opens. */
  unsent: number;
  /** Answered with 429 or 503. */
  refused: number;
  /** Refused calls whose answer had Retry-After and RateLimit. */
  refusedWell: number;
  /** Other answers, and connections that were lost. */
  failed: number;
  /** Accepted, but not ended, or not well, while the caller waited. */
  unfinished: number;
  /** Ids of accepted requests. */
  ids: string[];
  /** Milliseconds from call to result, of each request that succeeded. */
  latencies: number[];
  /** Milliseconds from call to refusal. */
  refusalMs: number[];
  /** Unix milliseconds of the first call and of the last that was sent. */
  startedAt: number;
  lastSentAt: number;
  seconds: number;
  connections: number;
  /** CPU of the sending process, in microseconds. */
  cpuMicros: number;
}

const SCRIPT = new URL('../../dist/load/timed-load-main.js', import.meta.url);

export function sendTimedLoad(job: TimedLoadJob): Promise<TimedLoadAnswer> {
  return runTask<TimedLoadAnswer>(SCRIPT, job);
}
