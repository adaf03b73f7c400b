/**
 * waiters: what one API process needs to hold a thousand calls of ?wait=, a thousand streams of events and a thousand
 * clients that poll once a second, each on a connection of its own, while their requests wait. Then the queue is let go,
 * and everybody has to hear of the end of his own request.
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
const FULL: Crowd = { waiters: 1_000, streams: 1_000, pollers: 1_000, holdMs: 20_000 };
const QUICK: Crowd = { waiters: 100, streams: 100, pollers: 100, holdMs: 3_000 };
const POLL_EVERY_MS = 1_000;
const WAIT_S = 60;
const SAMPLE_EVERY_MS = 100;

/** How a client heard of the end of its request: the record, and when. */
interface Heard {
  record: RequestRecord;
  at: number;
}

export async function waiters(context: PartContext): Promise<WaiterFigures> {
  const rig = await Rig.start({ models: { real: { [MODEL]: {} } }, ...context.rig });
  try {
    const figures = await measureCrowd(rig, context.quick ? QUICK : FULL, context.ledger);
    context.log(`waiters: ${figures.answered} answered, ${figures.rss_mb} MB`);
    return figures;
  } finally {
    await rig.stop();
  }
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
    const heard = Promise.all(ids.map((id, i) => clientOf(i, crowd)(rig.apiUrl, id, agent)));
    await sleep(crowd.holdMs);
    const cpu = (cpuMicros(api) - cpuBefore) / 1e6 / ((performance.now() - begun) / 1_000);
    await rig.hold(MODEL, false);
    const answers = await heard;
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

const listens: Client = async (url, id, agent) => {
  const { body, statusCode } = await request(`${url}/v1/requests/${id}/events`, { dispatcher: agent });
  if (statusCode !== 200) throw new Error(`events of ${id}: ${statusCode}`);
  let text = '';
  for await (const chunk of body) text += chunk;
  const last = /event: ended\ndata: (.*)\n\n$/.exec(text)?.[1];
  if (!last) throw new Error(`the stream of ${id} ended early: ${text.slice(-200)}`);
  return { record: JSON.parse(last) as RequestRecord, at: Date.now() };
};

async function get(url: string, agent: Agent): Promise<RequestRecord> {
  const { body, statusCode } = await request(url, { dispatcher: agent });
  if (statusCode !== 200) throw new Error(`${url}: ${statusCode} ${await body.text()}`);
  return (await body.json()) as RequestRecord;
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
