/**
 * One file, scored by the hand-written loop and by a bulk job in turn, both with all cores: the loop's best shape is found
 * on a shorter file first, and the round with the median ratio is what is reported. In each round the answers of both are
 * compared.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BulkJobCreateInput } from '@remuda/schemas';
import { type BulkLoopOutcome, runBulkLoop } from '../../bulk/loop/loop-job.js';
import type { LoopShape } from '../../raw/raw-job.js';
import { Rig } from '../../rig/rig.js';
import { median, nearest, round } from '../../rig/statistics.js';
import type { PartContext } from '../part.js';
import type { BulkPlan } from './bulk-plan.js';
import { type OwnRun, runBulkJob } from './own-side.js';

export interface BulkFileFigures {
  rows: number;
  /** From create to completed. */
  rows_per_s: number;
  loop_rows_per_s: number;
  ratio: number;
  /** All processes but the API together, at the worst moment. */
  peak_rss_mb: number;
  /** Without the start of the job and the joining of its output. */
  scoring_rows_per_s: number;
  /** Share of the instances' time that was not spent in native runs, 0 to 1. */
  outside_model_share: number;
  /** Share of the loop's time. */
  loop_outside_model_share: number;
  loop_best: LoopShape;
  loop_peak_rss_mb: number;
  /** Of each kind of process, in MB. */
  rss_mb: Record<string, number>;
  /** What Redis held at most. */
  redis_data_mb: number;
  /** Microseconds of CPU for each row, by kind of process, and of the loop. */
  cpu_us_per_row: Record<string, number>;
  /** Share of the machine that strangers took meanwhile, 0 to 1: above 0.05 the figures are not to be quoted. */
  others_share: number;
}

interface Round {
  loop: BulkLoopOutcome;
  own: OwnRun;
}

/** @param before called with the rig once its worker is warm, and the folder for files */
export async function compareBulk(
  plan: BulkPlan,
  context: PartContext,
  before: (rig: Rig, folder: string) => Promise<void> = async () => {},
): Promise<BulkFileFigures> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-bench-bulk-'));
  const rig = await Rig.start({ models: plan.models, ...context.rig });
  try {
    const [shape, input] = [await bestShape(plan, folder, context), join(folder, inputName(plan, 'input'))];
    await plan.writeInput(input, plan.rows);
    await rig.startWorker({ models: [plan.model], bulk: true });
    await warmUp(plan, rig, folder);
    await before(rig, folder);
    const rounds: Round[] = [];
    for (let i = 1; i <= context.rounds; i++) {
      rounds.push(await measureRound(plan, rig, { folder, input, shape }));
      context.log(`${plan.name}: round ${i}: ${show(rounds.at(-1) as Round)}`);
    }
    return summarise(plan, shape, rounds);
  } finally {
    await rig.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureRound(
  plan: BulkPlan,
  rig: Rig,
  { folder, input, shape }: { folder: string; input: string; shape: LoopShape },
): Promise<Round> {
  const outputs = { loop: join(folder, `loop.${plan.ending}`), own: join(folder, `own.${plan.ending}`) };
  const loop = await runBulkLoop(plan.loopJob(shape, input, outputs.loop));
  const own = await runBulkJob(rig, wantedOf(plan, input, outputs.own), cpus().length);
  if (loop.rows !== plan.rows || own.rows !== plan.rows)
    throw new Error(`${plan.name}: the loop has ${loop.rows} rows, the job ${own.rows}, of ${plan.rows}`);
  await plan.compare(outputs.loop, outputs.own);
  return { loop, own };
}

export function wantedOf(plan: BulkPlan, input: string, output: string): BulkJobCreateInput {
  return {
    ...plan.wanted,
    model: plan.model,
    input: { uri: input },
    output: { keep: plan.ending === 'parquet' ? ['id'] : [], uri: output, overwrite: true },
  };
}

/** Tables are known by their ending, lists of images too: .txt. */
function inputName({ ending }: BulkPlan, name: string): string {
  return ending === 'parquet' ? `${name}.parquet` : `${name}.txt`;
}

/** New processes run a shorter file before anything is timed. */
async function warmUp(plan: BulkPlan, rig: Rig, folder: string): Promise<void> {
  const input = join(folder, inputName(plan, 'sweep'));
  await runBulkJob(rig, wantedOf(plan, input, join(folder, `warm.${plan.ending}`)), cpus().length);
}

/** The loop's fastest shape, on a shorter file. */
async function bestShape(plan: BulkPlan, folder: string, { log }: PartContext): Promise<LoopShape> {
  const input = join(folder, inputName(plan, 'sweep'));
  await plan.writeInput(input, plan.sweepRows);
  let best: { shape: LoopShape; seconds: number } | undefined;
  for (const shape of plan.shapes) {
    const outcome = await runBulkLoop(plan.loopJob(shape, input, join(folder, `swept.${plan.ending}`)));
    log(
      `${plan.name}: loop, batch ${shape.batch} × ${shape.threads} threads: ${(outcome.rows / outcome.seconds).toFixed(1)} rows/s`,
    );
    if (!best || outcome.seconds < best.seconds) best = { shape, seconds: outcome.seconds };
  }
  return (best as { shape: LoopShape }).shape;
}

function ratioOf({ loop, own }: Round): number {
  return own.rows / own.seconds / (loop.rows / loop.seconds);
}

function summarise(plan: BulkPlan, shape: LoopShape, rounds: readonly Round[]): BulkFileFigures {
  const chosen = nearest(rounds, median(rounds.map(ratioOf)), ratioOf);
  const { loop, own } = chosen;
  const usPerRow = (micros: number): number => round(micros / plan.rows, 2);
  return {
    rows: plan.rows,
    rows_per_s: round(own.rows / own.seconds, 1),
    loop_rows_per_s: round(loop.rows / loop.seconds, 1),
    ratio: round(ratioOf(chosen), 3),
    peak_rss_mb: round(own.memory.total, 1),
    scoring_rows_per_s: round(own.rows / own.scoringSeconds, 1),
    outside_model_share: round(1 - own.deviceSeconds / (own.seconds * plan.instances), 3),
    loop_outside_model_share: round(1 - loop.modelSeconds / loop.seconds, 3),
    loop_best: shape,
    loop_peak_rss_mb: round(loop.peakRssMb, 1),
    rss_mb: rounded(own.memory.byRole),
    redis_data_mb: round(own.memory.redisData, 1),
    cpu_us_per_row: {
      worker: usPerRow(own.cpu.worker),
      runner: usPerRow(own.cpu.runner),
      coordinator: usPerRow(own.cpu.coordinator),
      redis: usPerRow(own.cpu.redis),
      total: usPerRow(own.cpu.total),
      loop: usPerRow(loop.cpuSeconds * 1e6),
    },
    others_share: round(own.othersShare),
  };
}

export function rounded(values: Record<string, number | undefined>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, value = 0]) => [name, round(value, 1)]));
}

function show(measured: Round): string {
  const { loop, own } = measured;
  const rates = `loop ${(loop.rows / loop.seconds).toFixed(1)}, remuda ${(own.rows / own.seconds).toFixed(1)} rows/s (scoring ${(own.rows / own.scoringSeconds).toFixed(1)})`;
  const { total, byRole, redisData } = own.memory;
  const memory = Object.entries(rounded(byRole))
    .map(([role, mb]) => `${role} ${mb}`)
    .join(' ');
  return `${rates}: ${ratioOf(measured).toFixed(3)}; RSS ${total.toFixed(0)} MB (${memory}; Redis holds ${redisData.toFixed(1)}); others ${Math.round(own.othersShare * 100)} %`;
}
