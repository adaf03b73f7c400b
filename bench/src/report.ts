/** The figures of a run against what the project wants to reach: one object for machines, one table for people. */
import Table from 'cli-table3';
import type { BulkFigures } from './parts/bulk/bulk.js';
import type { BulkFileFigures } from './parts/bulk/compare-bulk.js';
import type { ConvergeFigures } from './parts/converge.js';
import type { EtaFigures } from './parts/eta.js';
import type { IdleFigures } from './parts/idle.js';
import type { IdleModelsFigures } from './parts/idle-models.js';
import type { LoadCycleFigures } from './parts/load-cycles.js';
import type { OverheadFigures } from './parts/overhead.js';
import type { OverloadFigures } from './parts/overload.js';
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
  overload?: OverloadFigures;
  /** By crowd. */
  waiters?: WaiterFigures[];
  bulk?: BulkFigures;
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
/** Share of the capacity that is left when twice as much is offered. */
const LEAST_GOODPUT = 0.9;
const MOST_RECOVERY_S = 5;
const MOST_WAITERS_MB = 300;
/** Least share of the hand-written loop's rows a second. */
const BULK_TARGETS = { classifier: 0.95, recogniser: 0.95, tabular: 0.8 } as const;
const MOST_BULK_GROWTH_MB = 50;
/** Beyond one batch run, over idle. */
const MOST_BESIDE_BULK_MS = 20;

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
  overload,
  waiters,
  bulk,
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
  if (overload) rows.push(overloadRow(overload));
  for (const figures of waiters ?? []) rows.push(waitersRow(figures));
  if (bulk) rows.push(...bulkRows(bulk));
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

function overloadRow(figures: OverloadFigures): Row {
  const { capacity_per_s, offered_per_s, goodput_per_s, ratio, p99_ms, deadline_ms, recovery_s } = figures;
  const measured = [
    `${goodput_per_s} of ${capacity_per_s} requests/s where ${offered_per_s} are offered: ${ratio}`,
    `p99 of the accepted ${p99_ms} ms, deadline ${deadline_ms} ms; as before after ${recovery_s} s`,
    `${figures.refused_per_s} refused/s, ${figures.amiss} calls amiss; Redis at most ${figures.redis_peak_mb} MB`,
    `generator ${figures.generator_share} and API ${figures.api_share} of a core; others took ${percent(figures.others_share)} of the machine`,
  ].join('\n');
  const reached = ratio >= LEAST_GOODPUT && p99_ms <= deadline_ms && recovery_s <= MOST_RECOVERY_S;
  const target = `≥ ${LEAST_GOODPUT} × capacity, p99 in time, ≤ ${MOST_RECOVERY_S} s`;
  return ['overload', measured, target, mark(reached && figures.amiss === 0)];
}

function bulkRows({ interactive, ...files }: BulkFigures): Row[] {
  const rows = Object.entries(BULK_TARGETS).map(([name, target]) =>
    bulkFileRow(name, files[name as keyof typeof BULK_TARGETS], target),
  );
  const { few_rows, many_rows, most_growth_mb, redis_few_mb, redis_many_mb } = files.tabular.memory;
  const memory = [
    `${few_rows} to ${many_rows} rows: the process that grew most by ${most_growth_mb} MB`,
    `Redis holds at most ${redis_few_mb} and ${redis_many_mb} MB`,
  ].join('\n');
  rows.push([
    'bulk memory',
    memory,
    `≤ ${MOST_BULK_GROWTH_MB} MB`,
    mark(most_growth_mb <= MOST_BULK_GROWTH_MB),
  ]);
  const { idle_p99_ms, loaded_p99_ms, batch_run_ms, bulk_rows_per_s } = interactive;
  const added = loaded_p99_ms - idle_p99_ms - batch_run_ms;
  rows.push([
    'beside bulk',
    `p99 ${loaded_p99_ms} ms beside ${bulk_rows_per_s} rows/s, ${idle_p99_ms} ms idle; one batch runs ${batch_run_ms} ms`,
    `≤ batch + ${MOST_BESIDE_BULK_MS} ms over idle`,
    mark(added <= MOST_BESIDE_BULK_MS),
  ]);
  return rows;
}

function bulkFileRow(name: string, figures: BulkFileFigures, target: number): Row {
  const { rows, rows_per_s, loop_rows_per_s, ratio, loop_best, peak_rss_mb, loop_peak_rss_mb } = figures;
  const measured = [
    `${rows} rows: ${rows_per_s} rows/s of the loop's ${loop_rows_per_s} (batch ${loop_best.batch} × ${loop_best.threads}): ${ratio}`,
    `outside the model ${percent(figures.outside_model_share)}, the loop ${percent(figures.loop_outside_model_share)}; scoring alone ${figures.scoring_rows_per_s} rows/s`,
    `RSS ${peak_rss_mb} MB, the loop ${loop_peak_rss_mb}; CPU ${figures.cpu_us_per_row.total} µs a row, the loop ${figures.cpu_us_per_row.loop}`,
  ].join('\n');
  return [`bulk ${name}`, measured, `≥ ${target} × loop`, mark(ratio >= target)];
}

function mark(reached: boolean): string {
  return reached ? 'yes' : 'NO';
}
