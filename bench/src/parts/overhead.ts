/**
 * overhead: small requests (16 floats, the identity model), one POST each, against raw BullMQ add + process with the
 * same job options and the same number of jobs held at once. The client that sends is counted on neither side.
 */
import { type BullmqRate, measureBullmq } from '../bullmq/bullmq-side.js';
import { Rig } from '../rig/rig.js';
import { median, nearest, round } from '../rig/statistics.js';
import { showUse } from './meter.js';
import { CONNECTIONS, type Measured, measureLive, type PartContext, type Workload } from './part.js';

export interface OverheadFigures {
  cpu_us_per_request: number;
  bullmq_cpu_us_per_job: number;
  ratio: number;
  requests_per_s: number;
  bullmq_jobs_per_s: number;
  cpu_us_by_process: Record<'api' | 'worker' | 'runner' | 'redis', number>;
  /** Share of the machine that strangers took meanwhile, 0 to 1. */
  others_share: number;
}

/** Jobs that Remuda's worker holds of a model with 64 rows a batch and one instance: (2 × 1 + 2) × 64. */
const WORK_CONCURRENCY = 256;
const SENDERS = 2 * CONNECTIONS;

export async function overhead(context: PartContext): Promise<OverheadFigures> {
  const count = context.quick ? 4_000 : 20_000;
  const workload: Workload = { model: 'identity-16', body: { kind: 'tensor', rowShape: [1, 16] }, count };
  const rig = await Rig.start({ models: { tiny: ['identity-16'] }, ...context.rig });
  const rounds: OverheadRound[] = [];
  try {
    for (let i = 1; i <= context.rounds; i++) {
      const yardstick = await measureBullmq({
        count,
        addConcurrency: SENDERS,
        workConcurrency: WORK_CONCURRENCY,
      });
      const measured = await measureLive(rig, context.ledger, workload, SENDERS);
      rounds.push({ bullmq: yardstick, own: measured });
      context.log(
        `overhead: round ${i}: BullMQ ${yardstick.cpuMicrosPerJob.toFixed(0)} us/job, ${yardstick.jobsPerS.toFixed(0)} jobs/s; remuda ${measured.rowsPerS.toFixed(0)} requests/s; ${showUse(measured)}`,
      );
    }
  } finally {
    await rig.stop();
  }
  return summarise(rounds);
}

interface OverheadRound {
  bullmq: BullmqRate;
  own: Measured;
}

/** The round whose ratio is the median: its two sides were measured next to each other. */
function summarise(rounds: readonly OverheadRound[]): OverheadFigures {
  const ratioOf = ({ bullmq, own }: OverheadRound): number =>
    (own.cpuMs.total * 1000) / bullmq.cpuMicrosPerJob;
  const middle = nearest(rounds, median(rounds.map(ratioOf)), ratioOf);
  const { bullmq, own } = middle;
  const micros = (ms: number): number => round(ms * 1000, 0);
  const { api, worker, runner, redis, total } = own.cpuMs;
  return {
    cpu_us_per_request: micros(total),
    bullmq_cpu_us_per_job: round(bullmq.cpuMicrosPerJob, 0),
    ratio: round(ratioOf(middle), 3),
    requests_per_s: round(own.rowsPerS, 0),
    bullmq_jobs_per_s: round(bullmq.jobsPerS, 0),
    cpu_us_by_process: {
      api: micros(api),
      worker: micros(worker),
      runner: micros(runner),
      redis: micros(redis),
    },
    others_share: round(own.othersShare),
  };
}
