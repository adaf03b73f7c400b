/**
 * The soak: memory of worker and runner over many mixed requests. After a warm-up (heaps and pools find their size)
 * the growth is the slope of a least-squares line over what is left, times its length; more than the limit fails.
 */

import { untilNoneOpen } from './parts/part.js';
import { Ledger, type LedgerCount } from './rig/ledger.js';
import { childrenOf, rssBytes } from './rig/proc-stat.js';
import { Rig } from './rig/rig.js';
import { round, slope } from './rig/statistics.js';
import { SOAK_MODELS, sendTraffic } from './soak/soak-traffic.js';

export interface SoakOptions {
  /** Default 20,000. */
  requests?: number;
  /** Most growth after the warm-up, in MB. Default 20. */
  limitMb?: number;
  log?(line: string): void;
}

export interface MemoryCourse {
  /** Resident MB at the end of the warm-up and at the end, as the line has them. */
  from_mb: number;
  to_mb: number;
  growth_mb: number;
  slope_kb_per_1000_requests: number;
  peak_mb: number;
  /** All samples, in order, in MB. */
  samples_mb: number[];
}

export interface SoakReport {
  requests: number;
  seconds: number;
  limit_mb: number;
  worker: MemoryCourse;
  runner: MemoryCourse;
  ledger: LedgerCount;
  ok: boolean;
}

const SAMPLE_EVERY_MS = 200;
/** Share of the requests that is warm-up. */
const WARMUP_SHARE = 0.4;
const MB = 2 ** 20;

/** [requests accepted so far, resident MB] */
type Sample = [number, number];

export async function runSoak({
  requests = 20_000,
  limitMb = 20,
  log = () => {},
}: SoakOptions = {}): Promise<SoakReport> {
  const rig = await Rig.start({ models: SOAK_MODELS });
  try {
    await rig.startWorker();
    log(
      `soak: ${requests} requests over ${Object.keys(SOAK_MODELS.real ?? {}).length + (SOAK_MODELS.tiny?.length ?? 0)} models`,
    );
    return await soak(rig, requests, limitMb, log);
  } finally {
    await rig.stop();
  }
}

async function soak(
  rig: Rig,
  requests: number,
  limitMb: number,
  log: (line: string) => void,
): Promise<SoakReport> {
  const begun = Date.now();
  const ids: string[] = [];
  const stopSampling = startSampling(rig, () => ids.length);
  await sendTraffic(rig.apiUrl, requests, (id) => {
    ids.push(id);
    if (ids.length % 2_000 === 0)
      log(`soak: ${ids.length} accepted after ${Math.round((Date.now() - begun) / 1000)} s`);
  });
  await untilNoneOpen(rig);
  const samples = stopSampling();
  const ledger = new Ledger();
  await ledger.check(rig, ids);
  const worker = courseOf(samples.worker, requests);
  const runner = courseOf(samples.runner, requests);
  const { accepted, terminal, lost, doubled } = ledger.counts;
  const flat = worker.growth_mb <= limitMb && runner.growth_mb <= limitMb;
  return {
    requests,
    seconds: round((Date.now() - begun) / 1000, 1),
    limit_mb: limitMb,
    worker,
    runner,
    ledger: { accepted, terminal, lost, doubled },
    ok: flat && lost + doubled === 0,
  };
}

/** Samples memory until the function it returns is called. @throws when there is not exactly one worker and runner */
function startSampling(rig: Rig, done: () => number): () => { worker: Sample[]; runner: Sample[] } {
  const [worker] = rig.pids.worker;
  const [runner] = worker === undefined ? [] : childrenOf(worker);
  if (worker === undefined || runner === undefined)
    throw new Error('the soak needs one worker with one runner');
  const samples: { worker: Sample[]; runner: Sample[] } = { worker: [], runner: [] };
  const timer = setInterval(() => {
    samples.worker.push([done(), rssBytes(worker) / MB]);
    samples.runner.push([done(), rssBytes(runner) / MB]);
  }, SAMPLE_EVERY_MS);
  return () => {
    clearInterval(timer);
    // A runner that was replaced on the way would look flat.
    if (rssBytes(runner) === 0) throw new Error('the runner did not survive the soak');
    return samples;
  };
}

function courseOf(samples: readonly Sample[], requests: number): MemoryCourse {
  const warm = samples.filter(([done]) => done >= requests * WARMUP_SHARE);
  const perRequest = slope(warm);
  const [first] = warm[0] ?? [0];
  const [last] = warm.at(-1) ?? [0];
  const meanX = warm.reduce((sum, [x]) => sum + x, 0) / warm.length;
  const meanY = warm.reduce((sum, [, y]) => sum + y, 0) / warm.length;
  const lineAt = (x: number): number => round(meanY + perRequest * (x - meanX), 1);
  return {
    from_mb: lineAt(first),
    to_mb: lineAt(last),
    growth_mb: round(perRequest * (last - first), 1),
    slope_kb_per_1000_requests: round(perRequest * 1000 * 1024, 0),
    peak_mb: round(Math.max(...samples.map(([, mb]) => mb)), 1),
    samples_mb: samples.map(([, mb]) => round(mb, 1)),
  };
}
