/**
 * How long a caller waits while a bulk job keeps every instance of the same model busy: single rows over HTTP, one after
 * the other with a pause between, first with nothing else to do and then beside a job that has more rows than will be done.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendLoad } from '../../load/load-job.js';
import type { BulkDesk } from '../../rig/bulk-desk.js';
import type { Rig } from '../../rig/rig.js';
import { percentile, round } from '../../rig/statistics.js';
import type { PartContext } from '../part.js';
import type { BulkPlan } from './bulk-plan.js';
import { wantedOf } from './compare-bulk.js';

export interface InteractiveFigures {
  idle_p99_ms: number;
  loaded_p99_ms: number;
  /** Native time of one full batch of the job, beside whatever else ran. */
  batch_run_ms: number;
  idle_p50_ms: number;
  loaded_p50_ms: number;
  calls: number;
  /** Of the job, meanwhile. */
  bulk_rows_per_s: number;
}

const PAUSE_MS = 25;
const WARMUP_CALLS = 50;
const LOOK_EVERY_MS = 20;

export interface InteractiveSite {
  rig: Rig;
  plan: BulkPlan;
  /** Of the plan, large enough to outlast the calls. */
  input: string;
  folder: string;
  /** Shape of a row with the batch axis first, and rows of a full batch. */
  rowShape: number[];
  batchRows: number;
}

/** @throws Error when the job ended before the calls did: its file is too small */
export async function interactive(site: InteractiveSite, context: PartContext): Promise<InteractiveFigures> {
  const { rig, plan, input, folder } = site;
  const calls = context.quick ? 100 : 400;
  const bulk = await rig.openBulk();
  await call(site, context, WARMUP_CALLS);
  const idle = await call(site, context, calls);
  const { id } = await bulk.create(wantedOf(plan, input, join(folder, `under-load.${plan.ending}`)));
  await untilRunning(bulk, id);
  const before = await bulk.get(id);
  const begun = performance.now();
  const loaded = await call(site, context, calls);
  const { status, progress } = await bulk.get(id);
  const seconds = (performance.now() - begun) / 1000;
  if (status !== 'in_progress') throw new Error(`the job was ${status} before all calls were made`);
  await bulk.cancel(id);
  const rows = progress.rows_done - before.progress.rows_done;
  const deviceMs = (progress.device_seconds - before.progress.device_seconds) * 1000;
  const figures = {
    idle_p99_ms: round(percentile(idle, 99)),
    loaded_p99_ms: round(percentile(loaded, 99)),
    batch_run_ms: round(deviceMs / (rows / site.batchRows)),
    idle_p50_ms: round(percentile(idle, 50)),
    loaded_p50_ms: round(percentile(loaded, 50)),
    calls,
    bulk_rows_per_s: round(rows / seconds, 1),
  };
  context.log(`interactive: ${JSON.stringify(figures)}`);
  return figures;
}

/** Milliseconds of each call. */
async function call({ rig, plan, rowShape }: InteractiveSite, { ledger }: PartContext, count: number) {
  const { ids, latencies } = await sendLoad({
    ...{ url: rig.apiUrl, model: plan.model, body: { kind: 'tensor', rowShape }, count },
    ...{ connections: 1, waitS: 30, pauseMs: PAUSE_MS },
  });
  const records = await ledger.check(rig, ids);
  const bad = records.find(({ status }) => status !== 'succeeded');
  if (bad) throw new Error(`request ${bad.requestId} ended as ${bad.status}: ${JSON.stringify(bad.error)}`);
  return latencies;
}

async function untilRunning(bulk: BulkDesk, id: string): Promise<void> {
  for (;;) {
    const { status, progress } = await bulk.get(id);
    if (progress.rows_done > 0) return;
    if (!['validating', 'in_progress'].includes(status)) throw new Error(`the job is ${status}`);
    await sleep(LOOK_EVERY_MS);
  }
}
