/**
 * waiters: what one API process needs to hold a thousand calls of ?wait= beside a thousand streams of events, and beside
 * a thousand clients that poll once a second, each on a connection of its own, while their requests wait. Then the queue
 * is let go, and everybody has to hear of the end of his own request.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type RequestRecord } from '@remuda/schemas';
import { Agent, request } from 'undici';
import { sendLoad } from '../load/load-job.js';
import { cpuMicros, rssBytes } from '../rig/proc-stat.js';
import { Rig } from '../rig/rig.js';
import { percentile, round } from '../rig/statistics.js';
import { CLASSIFIER_ROW } from './classifier.js';
import { type PartContext, untilNoneOpen } from './part.js';

export interface WaiterFigures {
  waiters: number;
  streams: number;
  pollers: number;
  /** Clients that heard of the end of their own request. */
  answered: number;
  /** Resident memory of the API process, in MB: before the clients came, and the most while they were there. */
  idle_rss_mb: number;
  rss_mb: number;
  /** CPU of the API process while it held them, in percent of a core. */
  cpu_percent: number;
  /** From the end of a request until its waiter had heard of it, in milliseconds. */
  told_p50_ms: number;
  told_p99_ms: number;
}

export interface Crowd {
  waiters: number;
  streams: number;
  pollers: number;
  /** How long they are held before the queue is let go. */
  holdMs: number;
}

const MODEL = 'text-direction-tensor';
const FULL: readonly Crowd[] = [
  { waiters: 1_000, streams: 1_000, pollers: 0, holdMs: 15_000 },
  { waiters: 1_000, streams: 0, pollers: 1_000, holdMs: 15_000 },
];
const QUICK: readonly Crowd[] = [{ waiters: 100, streams: 100, pollers: 100, holdMs: 3_000 }];
const POLL_EVERY_MS = 1_000;
const WAIT_S = 60;
const SAMPLE_EVERY_MS = 100;
/** Between two clients. */
const ARRIVAL_MS = 2;

/** How a client heard of the end of its request: the record, and when. */
interface Heard {
  record: RequestRecord;
  at: number;
}

/** One entry for each crowd, each on an API process of its own. */
export async function waiters(context: PartContext): Promise<WaiterFigures[]> {
  const all: WaiterFigures[] = [];
  for (const crowd of context.quick ? QUICK : FULL) {
    const rig = await Rig.start({ models: { real: { [MODEL]: {} } }, ...context.rig });
    try {
      const figures = await measureCrowd(rig, crowd, context.ledger);
      context.log(`waiters: ${figures.answered} answered, ${figures.rss_mb} MB`);
      all.push(figures);
    } finally {
      await rig.stop();
    }
  }
  return all;
}

export async function measureCrowd(
  rig: Rig,
  crowd: Crowd,
  ledger: PartContext['ledger'],
): Promise<WaiterFigures> {
  await rig.startWorker({ models: [MODEL] });
  const count = crowd.waiters + crowd.streams + crowd.pollers;
  await rig.hold(MODEL, true);
  const { ids } = await sendLoad({
    ...{ url: rig.apiUrl, model: MODEL, body: { kind: 'tensor', rowShape: CLASSIFIER_ROW } },
    ...{ count, connections: 8, waitS: 0, pauseMs: 0 },
  });
  const [api = 0] = rig.pids.api;
  const idleRss = rssBytes(api);
  const memory = watchMemory(api);
  const cpuBefore = cpuMicros(api);
  const begun = performance.now();
  // One connection for each client, as they would have.
  const agent = new Agent({ connections: count, pipelining: 1, bodyTimeout: 0, headersTimeout: 0 });
  try {
    // What fails while the others are still held is told at the end.
    const heard = Promise.allSettled(
      ids.map(async (id, i) => {
        await sleep(i * ARRIVAL_MS);
        return clientOf(i, crowd)(rig.apiUrl, id, agent);
      }),
    );
    await sleep(crowd.holdMs);
    await sleep(count * ARRIVAL_MS);
    const cpu = (cpuMicros(api) - cpuBefore) / 1e6 / ((performance.now() - begun) / 1_000);
    await rig.hold(MODEL, false);
    const answers = (await heard).map(heardOf);
    await untilNoneOpen(rig);
    await ledger.check(rig, ids);
    const told = answers.slice(0, crowd.waiters).map(({ record, at }) => at - endOf(record));
    return {
      ...{ waiters: crowd.waiters, streams: crowd.streams, pollers: crowd.pollers },
      answered: answers.filter(({ record }, i) => record.request_id === ids[i] && isTerminal(record.status))
        .length,
      idle_rss_mb: megabytes(idleRss),
      rss_mb: megabytes(memory.stop()),
      cpu_percent: round(cpu * 100),
      told_p50_ms: round(percentile(told, 50)),
      told_p99_ms: round(percentile(told, 99)),
    };
  } finally {
    memory.stop();
    await agent.destroy();
  }
}

function heardOf<Value>(settled: PromiseSettledResult<Value>): Value {
  if (settled.status === 'fulfilled') return settled.value;
  throw settled.reason;
}

type Client = (url: string, id: string, agent: Agent) => Promise<Heard>;

function clientOf(index: number, { waiters: waiting, streams }: Crowd): Client {
  if (index < waiting) return waits;
  return index < waiting + streams ? listens : polls;
}

const waits: Client = async (url, id, agent) => {
  for (;;) {
    const record = await get(`${url}/v1/requests/${id}?wait=${WAIT_S}`, agent);
    if (isTerminal(record.status)) return { record, at: Date.now() };
  }
};

const polls: Client = async (url, id, agent) => {
  // Not all in the same moment.
  await sleep(Math.random() * POLL_EVERY_MS);
  for (;;) {
    const record = await get(`${url}/v1/requests/${id}`, agent);
    if (isTerminal(record.status)) return { record, at: Date.now() };
    await sleep(POLL_EVERY_MS);
  }
};

/** Connects again where the stream was refused or ended early, as a browser does. */
const listens: Client = async (url, id, agent) => {
  for (;;) {
    const text = await textOf(`${url}/v1/requests/${id}/events`, agent);
    const last = /event: ended\ndata: (.*)\n\n$/.exec(text ?? '')?.[1];
    if (last) return { record: JSON.parse(last) as RequestRecord, at: Date.now() };
    await sleep(POLL_EVERY_MS);
  }
};

async function get(url: string, agent: Agent): Promise<RequestRecord> {
  for (;;) {
    const text = await textOf(url, agent);
    if (text !== undefined) return JSON.parse(text) as RequestRecord;
    await sleep(POLL_EVERY_MS);
  }
}

/** undefined: it is to be asked again, since the connection was lost or Redis was slow. @throws Error for other refusals */
async function textOf(url: string, agent: Agent): Promise<string | undefined> {
  let answer: { statusCode: number; text: string };
  try {
    const { body, statusCode } = await request(url, { dispatcher: agent });
    answer = { statusCode, text: await body.text() };
  } catch {
    return undefined;
  }
  if (answer.statusCode === 200) return answer.text;
  if (answer.statusCode === 503) return undefined;
  throw new Error(`${url}: ${answer.statusCode} ${answer.text}`);
}

function watchMemory(pid: number): { stop(): number } {
  let most = 0;
  const look = (): void => {
    most = Math.max(most, rssBytes(pid));
  };
  const timer = setInterval(look, SAMPLE_EVERY_MS);
  return {
    stop() {
      look();
      clearInterval(timer);
      return most;
    },
  };
}

function endOf({ finished_at }: RequestRecord): number {
  return Date.parse(finished_at as string);
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
