/** The figures of a run against what the project wants to reach: one object for machines, one table for people. */
import Table from 'cli-table3';
import type { ConvergeFigures } from './parts/converge.js';
import type { EtaFigures } from './parts/eta.js';
import type { IdleFigures } from './parts/idle.js';
import type { IdleModelsFigures } from './parts/idle-models.js';
import type { LoadCycleFigures } from './parts/load-cycles.js';
import type { OverheadFigures } from './parts/overhead.js';
import { type ProfileFigures, textOf } from './parts/profile.js';
import type { ScaleFigures } from './parts/recogniser.js';
import type { RouteFigures } from './parts/route.js';
import type { SwapFigures } from './parts/swap.js';
import type { ThroughputFigures } from './parts/throughput.js';
import type { WaiterFigures } from './parts/waiters.js';
import type { LedgerCount } from './rig/ledger.js';

export interface Report {
  drain?: ThroughputFigures;
  live?: ThroughputFigures;
  images?: ThroughputFigures;
  recogniser?: ThroughputFigures;
  overhead?: OverheadFigures;
  idle_latency?: IdleFigures;
  idle_models?: IdleModelsFigures;
  scale?: ScaleFigures;
  load_cycles?: LoadCycleFigures;
  route?: RouteFigures;
  eta?: EtaFigures;
  /** By model. */
  profile?: Record<string, ProfileFigures>;
  swap?: SwapFigures;
  converge?: ConvergeFigures;
  /** By crowd. */
  waiters?: WaiterFigures[];
  ledger: LedgerCount;
}

type Row = [what: string, measured: string, target: string, reached: string];

/** Least share of the raw loop's rows a second. */
const THROUGHPUT_TARGETS = { drain: 0.85, live: 0.6, images: 0.85, recogniser: 0.95 } as const;
const MOST_OVERHEAD = 2.5;
const MOST_IDLE_P50_MS = 8;
const LEAST_SCALE = 1.8;
/** Memory after the last load cycle, against that after the third. */
const MOST_CYCLE_GROWTH = 1.05;
const MOST_ROUTE_US = 50;
const LEAST_PROFILE = 0.95;
const MOST_IDLE_CPU_PERCENT = 3;
const MOST_IDLE_CONNECTIONS = 300;
const MOST_SWAP_RATIO = 1.5;
const MOST_CONVERGE_S = 3;
const MOST_WAITERS_MB = 300;

export function reportTable(report: Report): string {
  const table = new Table({
    head: ['part', 'measured', 'target', 'reached'],
    style: { head: [], border: [] },
  });
  table.push(...rowsOf(report));
  return table.toString();
}

function rowsOf({
  overhead,
  idle_latency,
  idle_models,
  scale,
  load_cycles,
  route,
  eta,
  profile,
  swap,
  converge,
  waiters,
  ledger,
  ...rest
}: Report): Row[] {
  const rows: Row[] = [];
  for (const [name, target] of Object.entries(THROUGHPUT_TARGETS)) {
    const figures = rest[name as keyof typeof THROUGHPUT_TARGETS];
    if (figures) rows.push(throughputRow(name, figures, target));
  }
  if (overhead) rows.push(overheadRow(overhead));
  if (idle_latency) rows.push(idleRow(idle_latency));
  if (idle_models) rows.push(idleModelsRow(idle_models));
  if (scale) {
    const measured = `${scale.one} rows/s with one worker, ${scale.two} with two: ${scale.ratio} ×`;
    rows.push(['scale', measured, `≥ ${LEAST_SCALE} ×`, mark(scale.ratio >= LEAST_SCALE)]);
  }
  if (load_cycles) rows.push(loadCyclesRow(load_cycles));
  if (route) {
    const { models, workers, p50_us, p99_us, index_ms } = route;
    const measured = `p50 ${p50_us} µs, p99 ${p99_us} µs with ${models} models × ${workers} workers; index ${index_ms} ms`;
    rows.push(['route', measured, `p99 < ${MOST_ROUTE_US} µs`, mark(p99_us < MOST_ROUTE_US)]);
  }
  if (eta) {
    const { asked, p50_error, p90_error, median_bias } = eta;
    const measured = `error p50 ${percent(p50_error)}, p90 ${percent(p90_error)}, median bias ${percent(median_bias)} of the time left (${asked} asked)`;
    rows.push(['eta', measured, 'stated', '']);
  }
  for (const [model, figures] of Object.entries(profile ?? {})) rows.push(profileRow(model, figures));
  if (swap) rows.push(swapRow(swap));
  if (converge) rows.push(convergeRow(converge));
  for (const figures of waiters ?? []) rows.push(waitersRow(figures));
  const { accepted, terminal, lost, doubled } = ledger;
  const measured = `${accepted} accepted, ${terminal} ended, ${lost} lost, ${doubled} doubled`;
  rows.push(['ledger', measured, '0 lost, 0 doubled', mark(lost === 0 && doubled === 0)]);
  return rows;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function throughputRow(name: string, figures: ThroughputFigures, target: number): Row {
  const { rows_per_s, raw_rows_per_s, ratio, batch_mean, raw_best, raw_parallel_rows_per_s } = figures;
  const measured = [
    `${rows_per_s} rows/s of ${raw_rows_per_s} raw: ${ratio}`,
    `batch mean ${batch_mean}; raw batch ${raw_best.batch} × ${raw_best.threads} threads; two raw loops ${raw_parallel_rows_per_s}`,
  ].join('\n');
  return [name, measured, `≥ ${target} × raw`, mark(ratio >= target)];
}

function overheadRow(figures: OverheadFigures): Row {
  const { cpu_us_per_request, bullmq_cpu_us_per_job, ratio, requests_per_s, bullmq_jobs_per_s } = figures;
  const { api, worker, runner, redis } = figures.cpu_us_by_process;
  const measured = [
    `${cpu_us_per_request} µs CPU a request, BullMQ ${bullmq_cpu_us_per_job} µs a job: ${ratio} ×`,
    `API ${api}, worker ${worker}, runner ${runner}, Redis ${redis} µs`,
    `${requests_per_s} requests/s, BullMQ ${bullmq_jobs_per_s} jobs/s`,
  ].join('\n');
  return ['overhead', measured, `≤ ${MOST_OVERHEAD} ×`, mark(ratio <= MOST_OVERHEAD)];
}

function idleModelsRow(figures: IdleModelsFigures): Row {
  const { models, start_ms, cpu_percent, redis_cpu_percent, connections, loaded, first_request_ms } = figures;
  const measured = [
    `${models} models on demand: ${cpu_percent} % of a core (Redis ${redis_cpu_percent} %), ${connections} connections`,
    `ready after ${start_ms} ms with ${loaded} loaded; first request of one ${first_request_ms} ms`,
  ].join('\n');
  const target = `< ${MOST_IDLE_CPU_PERCENT} % of a core, < ${MOST_IDLE_CONNECTIONS} connections, none loaded`;
  const reached = cpu_percent < MOST_IDLE_CPU_PERCENT && connections < MOST_IDLE_CONNECTIONS && loaded === 0;
  return ['idle-models', measured, target, mark(reached)];
}

function waitersRow(figures: WaiterFigures): Row {
  const { waiters, streams, pollers, answered, idle_rss_mb, rss_mb, cpu_percent, told_p50_ms, told_p99_ms } =
    figures;
  const clients = waiters + streams + pollers;
  const measured = [
    `${waiters} wait, ${streams} listen, ${pollers} poll: ${rss_mb} MB (${idle_rss_mb} MB before), ${cpu_percent} % of a core`,
    `${answered} of ${clients} heard; a waiter ${told_p50_ms} ms after the end (p99 ${told_p99_ms} ms)`,
  ].join('\n');
  const reached = rss_mb < MOST_WAITERS_MB && answered === clients;
  return ['waiters', measured, `< ${MOST_WAITERS_MB} MB, all hear`, mark(reached)];
}

function idleRow({ raw_ms, p50_ms, p99_ms, added_p50_ms, added_p99_ms }: IdleFigures): Row {
  const measured = `p50 ${p50_ms} ms, p99 ${p99_ms} ms, the run alone ${raw_ms} ms\nadded: p50 ${added_p50_ms} ms, p99 ${added_p99_ms} ms`;
  return [
    'idle_latency',
    measured,
    `added p50 ≤ ${MOST_IDLE_P50_MS} ms`,
    mark(added_p50_ms <= MOST_IDLE_P50_MS),
  ];
}

function loadCyclesRow({ cycles, third_mb, last_mb, ratio }: LoadCycleFigures): Row {
  const measured = `runner holds ${third_mb} MB after the third load cycle, ${last_mb} MB after ${cycles}: ${ratio} ×`;
  return ['load_cycles', measured, `≤ ${MOST_CYCLE_GROWTH} ×`, mark(ratio <= MOST_CYCLE_GROWTH)];
}

function profileRow(model: string, figures: ProfileFigures): Row {
  const { recommended, best, recommended_rows_per_s, best_rows_per_s, ratio } = figures;
  const measured = [
    `${recommended_rows_per_s} rows/s (${textOf(recommended)}) of ${best_rows_per_s} (${textOf(best)}): ${ratio}`,
    `${figures.measurements} measurements, the full sweep ${figures.full_measurements}`,
  ].join('\n');
  return [`profile ${model}`, measured, `≥ ${LEAST_PROFILE} × best`, mark(ratio >= LEAST_PROFILE)];
}

function swapRow(figures: SwapFigures): Row {
  const { swaps, requests, errors, p99_before_ms, p99_during_ms, ratio, moved_after_ms } = figures;
  const measured = [
    `${swaps} swaps under 200 requests/s: ${errors} errors of ${requests}`,
    `p99 ${p99_before_ms} ms before, ${p99_during_ms} ms during: ${ratio} ×; moved after ${moved_after_ms} ms`,
  ].join('\n');
  const reached = errors === 0 && ratio <= MOST_SWAP_RATIO;
  return ['swap', measured, `no error, ≤ ${MOST_SWAP_RATIO} ×`, mark(reached)];
}

function convergeRow(figures: ConvergeFigures): Row {
  const { workers, models, rounds, seconds, worst_seconds, cpu_ms_per_worker } = figures;
  const measured = [
    `${workers} simulated workers, another version of ${models} models: ${seconds} s (median of ${rounds})`,
    `worst ${worst_seconds} s; ${cpu_ms_per_worker} ms of CPU a worker`,
  ].join('\n');
  return ['converge', measured, `< ${MOST_CONVERGE_S} s`, mark(worst_seconds < MOST_CONVERGE_S)];
}

function mark(reached: boolean): string {
  return reached ? 'yes' : 'NO';
}
