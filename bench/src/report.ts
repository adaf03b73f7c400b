/** The figures of a run against what the project wants to reach: one object for machines, one table for people. */
import Table from 'cli-table3';
import type { IdleFigures } from './parts/idle.js';
import type { LoadCycleFigures } from './parts/load-cycles.js';
import type { OverheadFigures } from './parts/overhead.js';
import { type ProfileFigures, textOf } from './parts/profile.js';
import type { ScaleFigures } from './parts/recogniser.js';
import type { ThroughputFigures } from './parts/throughput.js';
import type { LedgerCount } from './rig/ledger.js';

export interface Report {
  drain?: ThroughputFigures;
  live?: ThroughputFigures;
  images?: ThroughputFigures;
  recogniser?: ThroughputFigures;
  overhead?: OverheadFigures;
  idle_latency?: IdleFigures;
  scale?: ScaleFigures;
  load_cycles?: LoadCycleFigures;
  /** By model. */
  profile?: Record<string, ProfileFigures>;
  ledger: LedgerCount;
}

type Row = [what: string, measured: string, target: string, reached: string];

/** Least share of the raw loop's rows a second. */
const THROUGHPUT_TARGETS = { drain: 0.85, live: 0.6, images: 0.85, recogniser: 0.95 } as const;
const MOST_OVERHEAD = 2.5;
const MOST_IDLE_P50_MS = 8;
const LEAST_SCALE = 1.8;
const LEAST_PROFILE = 0.95;
/** Memory after the last load cycle, against that after the third. */
const MOST_CYCLE_GROWTH = 1.05;

export function reportTable(report: Report): string {
  const table = new Table({
    head: ['part', 'measured', 'target', 'reached'],
    style: { head: [], border: [] },
  });
  table.push(...rowsOf(report));
  return table.toString();
}

function rowsOf({ overhead, idle_latency, scale, load_cycles, profile, ledger, ...rest }: Report): Row[] {
  const rows: Row[] = [];
  for (const [name, target] of Object.entries(THROUGHPUT_TARGETS)) {
    const figures = rest[name as keyof typeof THROUGHPUT_TARGETS];
    if (figures) rows.push(throughputRow(name, figures, target));
  }
  if (overhead) rows.push(overheadRow(overhead));
  if (idle_latency) rows.push(idleRow(idle_latency));
  if (scale) {
    const measured = `${scale.one} rows/s with one worker, ${scale.two} with two: ${scale.ratio} ×`;
    rows.push(['scale', measured, `≥ ${LEAST_SCALE} ×`, mark(scale.ratio >= LEAST_SCALE)]);
  }
  if (load_cycles) rows.push(loadCyclesRow(load_cycles));
  for (const [model, figures] of Object.entries(profile ?? {})) rows.push(profileRow(model, figures));
  const { accepted, terminal, lost, doubled } = ledger;
  const measured = `${accepted} accepted, ${terminal} ended, ${lost} lost, ${doubled} doubled`;
  rows.push(['ledger', measured, '0 lost, 0 doubled', mark(lost === 0 && doubled === 0)]);
  return rows;
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

function mark(reached: boolean): string {
  return reached ? 'yes' : 'NO';
}
