/**
 * swap: the alias stable goes back and forth between two versions of the classifier while 200 requests a second are
 * sent, whether answered or not. Of the two versions only the one that serves is kept loaded, so each swap is a load,
 * a warm-up, golden cases, a move and an unload. A call counts as during a swap if it began between the edit and the
 * end of it, when every worker has let go of the old version. Calm and swaps alternate, so that what else the machine
 * does weighs on both.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminModel, encodeBinaryBody } from '@remuda/schemas';
import { Pool } from 'undici';
import { noise } from '../raw/raw-loop.js';
import { Rig } from '../rig/rig.js';
import { median, percentile, round } from '../rig/statistics.js';
import { CLASSIFIER_ROW } from './classifier.js';
import type { PartContext } from './part.js';

export interface SwapFigures {
  swaps: number;
  requests: number;
  /** Calls that were not answered with a result. */
  errors: number;
  p99_before_ms: number;
  p99_during_ms: number;
  ratio: number;
  /** Of calls that began between the edit and the move, while the workers load. */
  p99_loading_ms: number;
  /** Median time from the edit until requests go to the other version. */
  moved_after_ms: number;
}

const MODEL = 'text-direction-tensor';
const REQUESTS_PER_S = 200;
/** Before each swap. */
const CALM_MS = 4_000;
const STUCK_AFTER_MS = 60_000;
/** More calls than this open at once: the machine does not keep up, and a percentile says nothing. */
const MOST_OPEN = 5 * REQUESTS_PER_S;
/** A version outside the policy goes after that long without a request; default 10 s of calm in each swap. */
const IDLE_MS = '500';
const CUT_AFTER_MS = 10_000;
/** At the beginning, while V8 compiles. */
const WARM_MS = 4_000;

interface Call {
  id: string | null;
  begunAt: number;
  ms: number;
}

interface Swap {
  calmFrom: number;
  editedAt: number;
  movedAt: number;
  endedAt: number;
}

export async function swap(context: PartContext): Promise<SwapFigures> {
  const swaps = context.quick ? 4 : 20;
  // A policy that keeps neither version: what holds one is that it serves.
  const models = { real: { [MODEL]: { version_policy: '{ only: [9] }' } }, versions: { [MODEL]: 2 } };
  const rig = await Rig.start({ models, ...context.rig });
  const load = new OpenLoad(rig.apiUrl);
  try {
    for (let i = 0; i < 2; i++) {
      await rig.startWorker({ models: [MODEL], env: { REMUDA_WORKER_IDLE_MS: IDLE_MS } });
    }
    await alias(rig, '1');
    await untilServed(rig, '1');
    load.start();
    await sleep(WARM_MS);
    const done: Swap[] = [];
    for (let i = 1; i <= swaps; i++) {
      done.push(await swapTo(rig, i % 2 === 1 ? '2' : '1', load));
      context.log(`swap: ${i} of ${swaps}`);
    }
    const calls = await load.stop();
    const ids = calls.flatMap(({ id }) => id ?? []);
    await context.ledger.check(rig, ids);
    await context.ledger.countFenced(rig);
    return figuresOf(calls, done);
  } finally {
    await load.stop();
    await rig.stop();
  }
}

function figuresOf(calls: readonly Call[], swaps: readonly Swap[]): SwapFigures {
  const p99 = (from: keyof Swap, to: keyof Swap) => {
    const within = calls.filter(
      ({ id, begunAt }) => id !== null && swaps.some((one) => begunAt >= one[from] && begunAt < one[to]),
    );
    return percentile(
      within.map(({ ms }) => ms),
      99,
    );
  };
  const before = p99('calmFrom', 'editedAt');
  const during = p99('editedAt', 'endedAt');
  return {
    swaps: swaps.length,
    requests: calls.length,
    errors: calls.filter(({ id }) => id === null).length,
    p99_before_ms: round(before),
    p99_during_ms: round(during),
    ratio: round(during / before),
    p99_loading_ms: round(p99('editedAt', 'movedAt')),
    moved_after_ms: round(median(swaps.map(({ editedAt, movedAt }) => movedAt - editedAt)), 0),
  };
}

async function swapTo(rig: Rig, version: string, load: OpenLoad): Promise<Swap> {
  const calmFrom = performance.now();
  await sleep(CALM_MS);
  load.requireKeptUp();
  const editedAt = performance.now();
  await alias(rig, version);
  const movedAt = await untilServed(rig, version);
  const other = version === '1' ? '2' : '1';
  await until('the old version is let go', async () => {
    load.requireKeptUp();
    const { workers } = await rig.fleet();
    return workers.every(({ models }) =>
      models.every((loaded) => loaded.version !== other || loaded.state === 'unloaded'),
    );
  });
  return { calmFrom, editedAt, movedAt, endedAt: performance.now() };
}

async function alias(rig: Rig, version: string): Promise<void> {
  await rig.admin('PUT', `${MODEL}/aliases/stable`, { version });
}

async function untilServed(rig: Rig, version: string): Promise<number> {
  await until(`version ${version} is served`, async () => {
    const model = (await rig.admin('GET', MODEL)) as AdminModel;
    return model.default_version === version;
  });
  return performance.now();
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + STUCK_AFTER_MS; !(await holds()); await sleep(50)) {
    if (performance.now() > end) throw new Error(`not within ${STUCK_AFTER_MS / 1000} s: ${what}`);
  }
}

/** Sends at a fixed rate, whether the calls before were answered or not: a stall is felt by all that come during it. */
class OpenLoad {
  readonly #pool: Pool;
  readonly #calls: Promise<Call>[] = [];
  readonly #body: { body: Buffer; headers: Record<string, string> };
  #timer: NodeJS.Timeout | undefined;
  #open = 0;

  constructor(url: string) {
    this.#pool = new Pool(url, { connections: 256 });
    const bytes = new Uint8Array(noise(1, CLASSIFIER_ROW).buffer);
    const { body, headerLength } = encodeBinaryBody('inputs', [
      { name: 'x', datatype: 'FP32', shape: CLASSIFIER_ROW, bytes },
    ]);
    const type = 'application/octet-stream';
    this.#body = {
      body,
      headers: {
        'content-type': type,
        'inference-header-content-length': String(headerLength),
        prefer: 'wait=30',
      },
    };
  }

  start(): void {
    const begun = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - begun) / 1000) * REQUESTS_PER_S);
      for (; sent < due; sent++) this.#calls.push(this.#call());
    }, 5);
  }

  /** @throws Error when calls are answered more slowly than they are sent */
  requireKeptUp(): void {
    if (this.#open <= MOST_OPEN) return;
    throw new Error(
      `the machine does not keep up with ${REQUESTS_PER_S} requests/s: ${this.#open} calls are open; measure when it is less busy`,
    );
  }

  /** Calls that are not answered soon are cut off. */
  async stop(): Promise<Call[]> {
    clearInterval(this.#timer);
    const cut = setTimeout(() => void this.#pool.destroy().catch(() => {}), CUT_AFTER_MS);
    const calls = await Promise.all(this.#calls);
    clearTimeout(cut);
    if (!this.#pool.closed && !this.#pool.destroyed) await this.#pool.close();
    return calls;
  }

  async #call(): Promise<Call> {
    const begunAt = performance.now();
    this.#open++;
    const path = `/v1/models/${MODEL}/requests`;
    try {
      const { statusCode, headers, body } = await this.#pool.request({ method: 'POST', path, ...this.#body });
      await body.dump();
      const location = headers.location ?? headers['content-location'];
      const ended = statusCode === 200 && typeof location === 'string';
      const id = ended ? (location.split('/')[3] ?? null) : null;
      return { id, begunAt, ms: performance.now() - begunAt };
    } catch {
      return { id: null, begunAt, ms: performance.now() - begunAt };
    } finally {
      this.#open--;
    }
  }
}
