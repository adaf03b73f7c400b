/**
 * overload: what is left of the capacity when twice as much is offered. First a closed loop of callers who wait for
 * their results finds the capacity; then independent callers (Poisson arrivals, keep-alive connections, from a process of
 * its own) come at twice that rate for a minute, do not come back when refused, and count only what they get within
 * their deadline. Then the line is quiet, and one caller measures how long it takes until he is served as before.
 *
 * API, worker, Redis and generator share the machine, so what the generator takes more at twice the rate is lost too: it
 * is reported.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { sendTimedLoad, type TimedLoadAnswer, type TimedLoadJob } from '../load/timed-load-job.js';
import { Rig } from '../rig/rig.js';
import { percentile, round } from '../rig/statistics.js';
import { sampleImages } from './classifier.js';
import { startMeter } from './meter.js';
import type { PartContext } from './part.js';

export interface OverloadFigures {
  capacity_per_s: number;
  offered_per_s: number;
  /** Accepted, and succeeded within the deadline. */
  goodput_per_s: number;
  /** Goodput to capacity. */
  ratio: number;
  accepted_per_s: number;
  refused_per_s: number;
  /** Of the accepted; what did not succeed counts as slower than all others. */
  p99_ms: number;
  deadline_ms: number;
  /** Of a refusal. */
  refusal_p99_ms: number;
  /** Refusals without Retry-After or RateLimit, calls that failed otherwise or could not be sent: 0. */
  amiss: number;
  redis_peak_mb: number;
  /** From the last call of the load until a lone caller is served as fast as before it. */
  recovery_s: number;
  idle_ms: number;
  /** Of one core. */
  generator_share: number;
  api_share: number;
  /** Of the machine, taken meanwhile by processes that are no part of this: where it is not small the figures say little. */
  others_share: number;
}

const MODEL = 'text-direction';
const MODELS = { real: { [MODEL]: {} } };
const DEADLINE_MS = 2_000;
/** A quarter of the deadline: the rest is for the run, and for the way through a busy API. */
const MAX_WAIT_S = DEADLINE_MS / 4_000;
const FACTOR = 2;
/** More than two full batches of every instance wait at any time. */
const CALLERS = 128;
const WARM_S = 6;
const LOOK_EVERY_MS = 200;
const PROBES = 60;
const PROBE_PAUSE_MS = 20;
/** So many in a row as fast as before. */
const PROBES_IN_ROW = 5;
const STUCK_AFTER_MS = 60_000;

export async function overload(context: PartContext): Promise<OverloadFigures> {
  const seconds = context.quick ? 10 : 60;
  const capacity = await capacityOf(context);
  const offered = capacity * FACTOR;
  context.log(`overload: ${round(capacity)} requests/s in a closed loop, ${round(offered)} are offered`);
  const apiEnv = { REMUDA_API_MAX_QUEUE_WAIT_S: String(MAX_WAIT_S) };
  const rig = await Rig.start({ models: MODELS, apiEnv, ...context.rig });
  try {
    await rig.startWorker({ models: [MODEL] });
    // Warm, and measured: the expected wait comes from runs under load.
    await settle(rig, context, await send(rig, WARM_S, { kind: 'closed', callers: CALLERS }, null));
    const idle = await idleMs(rig);
    const memory = watchMemory(rig);
    const apiBefore = rig.cpu().api;
    const stopMeter = await startMeter(rig);
    const load = await send(rig, seconds, { kind: 'open', perS: offered }, DEADLINE_MS);
    const { othersShare } = await stopMeter(load.sent, load.cpuMicros);
    const apiShare = (rig.cpu().api - apiBefore) / (seconds * 1e6);
    const recoveryS = await recovery(rig, load.lastSentAt, idle.usual);
    const peak = await memory.stop();
    await settle(rig, context, load);
    return figuresOf({ capacity, load, peak, recoveryS, idleMs: idle.median, apiShare, othersShare });
  } finally {
    await rig.stop();
  }
}

function send(
  rig: Rig,
  seconds: number,
  arrivals: TimedLoadJob['arrivals'],
  deadlineMs: number | null,
): Promise<TimedLoadAnswer> {
  const files = sampleImages();
  return sendTimedLoad({ url: rig.apiUrl, model: MODEL, files, deadlineMs, seconds, arrivals });
}

/** Results a second, without a limit that would refuse any of the callers; V8 compiles in a round before. */
async function capacityOf(context: PartContext): Promise<number> {
  const rig = await Rig.start({ models: MODELS, ...context.rig });
  const callers = { kind: 'closed' as const, callers: CALLERS };
  try {
    await rig.startWorker({ models: [MODEL] });
    await settle(rig, context, await send(rig, WARM_S, callers, null));
    const load = await send(rig, context.quick ? 8 : 20, callers, null);
    await settle(rig, context, load);
    return load.latencies.length / load.seconds;
  } finally {
    await rig.stop();
  }
}

async function settle(rig: Rig, { ledger }: PartContext, { ids }: TimedLoadAnswer): Promise<void> {
  for (const end = Date.now() + STUCK_AFTER_MS; (await rig.store.countOpen()) > 0; await sleep(50)) {
    if (Date.now() > end) throw new Error('requests are open a minute after the load');
  }
  // Fenced writes are no sign of a run too many here: a deadline that passes during a run makes one.
  await ledger.check(rig, ids);
  await rig.forgetRequests();
}

/** What a lone caller waits for a result: the median, and what nine of ten stay below. */
async function idleMs(rig: Rig): Promise<{ median: number; usual: number }> {
  const probe = await lonelyCaller(rig);
  const times: number[] = [];
  for (let i = 0; i < PROBES; i++) {
    times.push(await probe());
    await sleep(PROBE_PAUSE_MS);
  }
  return { median: percentile(times, 50), usual: percentile(times, 90) };
}

/** Seconds from the end of the load until calls are as fast as they were before it, several in a row. */
async function recovery(rig: Rig, endedAt: number, usualMs: number): Promise<number> {
  const probe = await lonelyCaller(rig);
  let since: number | undefined;
  let inRow = 0;
  for (const end = Date.now() + STUCK_AFTER_MS; Date.now() < end; await sleep(PROBE_PAUSE_MS)) {
    const begun = Date.now();
    if ((await probe()) > usualMs) {
      inRow = 0;
      since = undefined;
      continue;
    }
    since ??= begun;
    if (++inRow >= PROBES_IN_ROW) return Math.max(0, since - endedAt) / 1_000;
  }
  return STUCK_AFTER_MS / 1_000;
}

/** Milliseconds of one call from a connection that stays open; Infinity: refused. */
async function lonelyCaller(rig: Rig): Promise<() => Promise<number>> {
  const [file] = sampleImages();
  const body = await readFile(file as string);
  const headers = { 'content-type': 'image/png', prefer: 'wait=10' };
  return async () => {
    const begun = performance.now();
    const response = await request(`${rig.apiUrl}/v1/models/${MODEL}/requests`, {
      ...{ method: 'POST' as const, headers, body },
    });
    await response.body.dump();
    return response.statusCode === 200 ? performance.now() - begun : Number.POSITIVE_INFINITY;
  };
}

/** Most memory that Redis has used from now on, in bytes. */
function watchMemory({ redis }: Rig): { stop(): Promise<number> } {
  let most = 0;
  let going = true;
  const watching = (async () => {
    for (; going; await sleep(LOOK_EVERY_MS)) {
      const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1] ?? 0);
      most = Math.max(most, used);
    }
  })();
  return {
    async stop() {
      going = false;
      await watching;
      return most;
    },
  };
}

interface Figures {
  capacity: number;
  load: TimedLoadAnswer;
  peak: number;
  recoveryS: number;
  idleMs: number;
  apiShare: number;
  othersShare: number;
}

function figuresOf({
  capacity,
  load,
  peak,
  recoveryS,
  idleMs,
  apiShare,
  othersShare,
}: Figures): OverloadFigures {
  const { latencies, seconds, sent, refused, refusedWell, failed, unsent, unfinished } = load;
  const good = latencies.filter((ms) => ms <= DEADLINE_MS).length / seconds;
  const slowest = (DEADLINE_MS / 1_000 + 1) * 1_000;
  const all = [...latencies, ...Array.from({ length: unfinished }, () => slowest)];
  return {
    capacity_per_s: round(capacity, 1),
    offered_per_s: round(sent / seconds, 1),
    goodput_per_s: round(good, 1),
    ratio: round(good / capacity),
    accepted_per_s: round(all.length / seconds, 1),
    refused_per_s: round(refused / seconds, 1),
    p99_ms: round(percentile(all, 99), 0),
    deadline_ms: DEADLINE_MS,
    refusal_p99_ms: round(percentile(load.refusalMs, 99), 1),
    amiss: refused - refusedWell + failed + unsent,
    redis_peak_mb: round(peak / 1024 ** 2, 1),
    recovery_s: round(recoveryS, 2),
    idle_ms: round(idleMs, 1),
    generator_share: round(load.cpuMicros / (seconds * 1e6)),
    api_share: round(apiShare),
    others_share: round(othersShare),
  };
}
