/** Entry of the timed load generator: closed (so many callers, each at once again) or open (Poisson arrivals). */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveTask } from '../rig/node-process.js';
import { type RawAnswer, RawClient, rawRequest } from './raw-client.js';
import type { TimedLoadAnswer, TimedLoadJob } from './timed-load-job.js';

const MOST_CONNECTIONS = 4_000;
/** Between two looks at which callers are due. */
const TICK_MS = 2;
/** A refused caller of a closed load comes again. */
const BUSY_PAUSE_MS = 50;
const CLEAR_MS = 30_000;
/** A caller who has time waits as long as the API holds a call. */
const PATIENT_S = 60;

serveTask<TimedLoadJob, TimedLoadAnswer>(generate);

async function generate(job: TimedLoadJob): Promise<TimedLoadAnswer> {
  const load = new TimedLoad(job, await requestsOf(job));
  const cpu = process.cpuUsage();
  await (job.arrivals.kind === 'closed'
    ? load.runClosed(job.arrivals.callers)
    : load.runOpen(job.arrivals.perS));
  const { user, system } = process.cpuUsage(cpu);
  return { ...load.answer, cpuMicros: user + system };
}

async function requestsOf({ url, model, files, deadlineMs }: TimedLoadJob): Promise<Buffer[]> {
  const query = deadlineMs === null ? '' : `?timeout_ms=${deadlineMs}`;
  const path = `/v1/models/${model}/requests${query}`;
  const waitS = deadlineMs === null ? PATIENT_S : Math.ceil(deadlineMs / 1_000) + 1;
  const headers = { 'content-type': 'image/png', prefer: `wait=${waitS}` };
  const bodies = await Promise.all(files.map((file) => readFile(file)));
  return bodies.map((body) => rawRequest(new URL(url), path, headers, body));
}

class TimedLoad {
  readonly answer: TimedLoadAnswer = {
    ...{ sent: 0, unsent: 0, refused: 0, refusedWell: 0, failed: 0, unfinished: 0, ids: [], latencies: [] },
    ...{ refusalMs: [], startedAt: Date.now(), lastSentAt: 0, seconds: 0, connections: 0, cpuMicros: 0 },
  };
  readonly #job: TimedLoadJob;
  readonly #requests: readonly Buffer[];
  readonly #client: RawClient;
  #open = 0;

  constructor(job: TimedLoadJob, requests: readonly Buffer[]) {
    this.#job = job;
    this.#requests = requests;
    this.#client = new RawClient(job.url, MOST_CONNECTIONS);
  }

  async runClosed(callers: number): Promise<void> {
    const end = performance.now() + this.#job.seconds * 1_000;
    const begun = performance.now();
    const call = (): Promise<boolean> => new Promise((resolve) => this.#send(resolve));
    await Promise.all(
      Array.from({ length: callers }, async () => {
        while (performance.now() < end) if (await call()) await sleep(BUSY_PAUSE_MS);
      }),
    );
    this.#finish(begun);
  }

  async runOpen(perS: number): Promise<void> {
    const begun = performance.now();
    const end = begun + this.#job.seconds * 1_000;
    for (let due = begun + gapMs(perS); due < end; ) {
      const now = performance.now();
      for (; due <= now && due < end; due += gapMs(perS)) this.#send(() => {});
      await sleep(TICK_MS);
    }
    this.answer.seconds = this.#job.seconds;
    for (const until = performance.now() + CLEAR_MS; this.#open > 0 && performance.now() < until; )
      await sleep(10);
    this.#finish(begun);
  }

  #finish(begun: number): void {
    this.answer.seconds ||= (performance.now() - begun) / 1_000;
    this.answer.connections = this.#client.connections;
    this.#client.close();
  }

  /** @param done with whether it was refused */
  #send(done: (refused: boolean) => void): void {
    const { answer } = this;
    const begun = performance.now();
    const request = this.#requests[answer.sent % this.#requests.length] as Buffer;
    const sent = this.#client.send(request, (reply) => {
      this.#open--;
      this.#note(reply, performance.now() - begun);
      done(reply !== null && (reply.status === 429 || reply.status === 503));
    });
    if (!sent) {
      answer.unsent++;
      done(true);
      return;
    }
    this.#open++;
    answer.sent++;
    answer.lastSentAt = Date.now();
  }

  #note(reply: RawAnswer | null, ms: number): void {
    const { answer } = this;
    if (reply?.status === 429 || reply?.status === 503) {
      answer.refused++;
      answer.refusalMs.push(ms);
      if (reply.head.includes('\r\nretry-after: ') && reply.head.includes('\r\nratelimit: '))
        answer.refusedWell++;
      return;
    }
    if (reply?.status !== 200 && reply?.status !== 202) {
      answer.failed++;
      return;
    }
    const id = /\r\nx-request-id: (\S+)/.exec(reply.head)?.[1];
    if (id) answer.ids.push(id);
    if (reply.status === 200 && reply.body.includes('"status":"succeeded"')) answer.latencies.push(ms);
    else answer.unfinished++;
  }
}

/** Between two arrivals of a Poisson process. */
function gapMs(perS: number): number {
  return (-Math.log(1 - Math.random()) / perS) * 1_000;
}
