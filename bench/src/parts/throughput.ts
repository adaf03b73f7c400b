/**
 * The parts that compare rows a second with a raw loop: drain, live, images, recogniser. Both sides alternate within
 * one run (raw, remuda, raw, remuda …), and the round with the median ratio is what is reported.
 */
import { RawSide, type RawSideOptions } from '../raw/raw-side.js';
import type { BenchModels } from '../rig/bench-models.js';
import { Rig } from '../rig/rig.js';
import { median, nearest, round } from '../rig/statistics.js';
import { showUse } from './meter.js';
import type { Measured, PartContext } from './part.js';

export interface ThroughputPlan {
  name: string;
  models: BenchModels;
  raw: RawSideOptions;
  remuda(rig: Rig): Promise<Measured>;
}

export interface ThroughputFigures {
  rows_per_s: number;
  raw_rows_per_s: number;
  ratio: number;
  batch_mean: number;
  /** Two raw loops side by side, one thread each: stricter, and in no ratio. */
  raw_parallel_rows_per_s: number;
  /** Share of the machine that strangers took meanwhile, 0 to 1: above 0.05 the figures are not to be quoted. */
  others_share: number;
  /** Shape of the best raw loop. */
  raw_best: { batch: number; threads: number };
  /** CPU of the best raw loop for each row, and of Remuda for each request: what a busy machine changes least. */
  raw_cpu_ms_per_row: number;
  cpu_ms_per_request: Record<'api' | 'worker' | 'runner' | 'redis' | 'total', number>;
}

export async function compareThroughput(
  plan: ThroughputPlan,
  context: PartContext,
): Promise<ThroughputFigures> {
  const { name } = plan;
  const raw = new RawSide(plan.raw);
  for (const rate of await raw.sweep()) {
    context.log(
      `${name}: raw sweep, batch ${rate.batch} × ${rate.threads} threads: ${rate.rowsPerS.toFixed(1)} rows/s, CPU ${rate.cpuMsPerRow.toFixed(3)} ms/row`,
    );
  }
  const rig = await Rig.start({ models: plan.models, ...context.rig });
  try {
    const rounds: { raw: RawRound; own: Measured }[] = [];
    for (let i = 1; i <= context.rounds; i++) {
      const rawRound = await raw.round();
      const own = await plan.remuda(rig);
      rounds.push({ raw: rawRound, own });
      context.log(
        `${name}: round ${i}: raw ${rawRound.rowsPerS.toFixed(1)} (batch ${rawRound.best.batch} × ${rawRound.best.threads}; two loops ${rawRound.parallelRowsPerS.toFixed(1)}; CPU ${rawRound.best.cpuMsPerRow.toFixed(3)} ms/row), remuda ${own.rowsPerS.toFixed(1)} rows/s; ${showUse(own)}`,
      );
    }
    return summarise(rounds);
  } finally {
    await rig.stop();
  }
}

type RawRound = Awaited<ReturnType<RawSide['round']>>;

/** The round whose ratio is the median: its two sides were measured next to each other, so its figures belong together. */
function summarise(rounds: readonly { raw: RawRound; own: Measured }[]): ThroughputFigures {
  const ratioOf = ({ raw, own }: { raw: RawRound; own: Measured }): number => own.rowsPerS / raw.rowsPerS;
  const middle = median(rounds.map(ratioOf));
  const { raw, own } = nearest(rounds, middle, ratioOf);
  const { api, worker, runner, redis, total } = own.cpuMs;
  return {
    rows_per_s: round(own.rowsPerS, 1),
    raw_rows_per_s: round(raw.rowsPerS, 1),
    ratio: round(ratioOf({ raw, own }), 3),
    batch_mean: round(own.batchMean),
    raw_parallel_rows_per_s: round(raw.parallelRowsPerS, 1),
    others_share: round(own.othersShare),
    raw_best: { batch: raw.best.batch, threads: raw.best.threads },
    raw_cpu_ms_per_row: round(raw.best.cpuMsPerRow, 3),
    cpu_ms_per_request: {
      api: round(api, 3),
      worker: round(worker, 3),
      runner: round(runner, 3),
      redis: round(redis, 3),
      total: round(total, 3),
    },
  };
}
