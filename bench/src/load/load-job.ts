/** What a load generator is asked to send, and what it answers. It runs in a process of its own, as a client would. */
import { runTask } from '../rig/node-process.js';

export type LoadBody =
  /** One row of noise as a binary tensor named x. */
  | { kind: 'tensor'; rowShape: number[] }
  /** Image files in turn, each as a raw image/png body. */
  | { kind: 'images'; files: string[] };

export interface LoadJob {
  /** Base address of the API. */
  url: string;
  model: string;
  body: LoadBody;
  count: number;
  /** Keep-alive connections, one request at a time on each. */
  connections: number;
  /** Seconds to hold each call (Prefer: wait); 0: answer at once. */
  waitS: number;
  /** Before each call, on each connection. */
  pauseMs: number;
}

export interface LoadAnswer {
  /** Of accepted requests, in the order of their answers. */
  ids: string[];
  /** Calls that were answered with 429 or 503 and sent again. */
  refused: number;
  /** Unix milliseconds of the first call and the last answer. */
  startedAt: number;
  endedAt: number;
  /** CPU of the sending process, in microseconds. */
  cpuMicros: number;
  /** Milliseconds of each call. */
  latencies: number[];
}

// Of the build, also when a test runs the sources.
const SCRIPT = new URL('../../dist/load/load-main.js', import.meta.url);

export function sendLoad(job: LoadJob): Promise<LoadAnswer> {
  return runTask<LoadAnswer>(SCRIPT, job);
}
