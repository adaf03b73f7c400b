/** The tabular part: the batch that is best for both sides, the table, memory at few and many rows, and callers beside it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { FEATURES, writeTable } from '../../bulk/data/table-file.js';
import { runRawLoops } from '../../raw/raw-job.js';
import { layTabular, type TabularModel } from '../../rig/bench-models.js';
import { Rig } from '../../rig/rig.js';
import type { PartContext } from '../part.js';
import { type BulkFileFigures, compareBulk, wantedOf } from './compare-bulk.js';
import { type FlatnessFigures, flatnessOf } from './flatness.js';
import { type InteractiveFigures, interactive } from './interactive.js';
import { type OwnRun, runBulkJob } from './own-side.js';
import { tabularPlan } from './plans.js';

export type TabularFigures = BulkFileFigures & { batch_rows: number; memory: FlatnessFigures };

const BATCHES = [1024, 2048, 4096, 8192, 16_384];
/** A smaller batch that is nearly as fast is better: callers wait for less. */
const NEARLY = 0.96;
const FEW_ROWS = 100_000;
/** What a job under load must outlast: more than are done in the time of the calls. */
const LOAD_ROWS = { quick: 2_000_000, usual: 10_000_000 };

export async function tabular(
  context: PartContext,
): Promise<{ tabular: TabularFigures; interactive: InteractiveFigures }> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-bench-tabular-'));
  try {
    const model = await bestModel(folder, context);
    const plan = tabularPlan(context, model, join(folder, 'tabular/1/model.onnx'));
    let few: OwnRun | undefined;
    const figures = await compareBulk(plan, context, async (rig, files) => {
      const input = join(files, 'few.parquet');
      await writeTable(input, FEW_ROWS);
      few = await runBulkJob(rig, wantedOf(plan, input, join(files, 'few-out.parquet')), cpus().length);
    });
    const memory = flatnessOf(few as OwnRun, figures);
    return {
      tabular: { ...figures, batch_rows: model.maxBatchSize, memory },
      interactive: await besideBulk(folder, model, context),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Instances side by side with one thread each, as the loop's best rival; the batch by measuring. */
async function bestModel(folder: string, { quick, log }: PartContext): Promise<TabularModel> {
  const instances = Math.max(1, Math.min(2, cpus().length));
  const unsized = { maxBatchSize: 1, instances, threads: 1 };
  const modelPath = await layTabular(folder, unsized);
  const rates = await runRawLoops({
    ...{ kind: 'tensor', modelPath, rowShape: [1, FEATURES], loops: instances, seconds: quick ? 0.5 : 2 },
    shapes: BATCHES.map((batch) => ({ batch, threads: 1 })),
  });
  const best = Math.max(...rates.map(({ rowsPerS }) => rowsPerS));
  for (const { batch, rowsPerS } of rates)
    log(`tabular: model alone, batch ${batch} × ${instances} instances: ${rowsPerS.toFixed(0)} rows/s`);
  const chosen = rates.find(({ rowsPerS }) => rowsPerS >= best * NEARLY) as (typeof rates)[number];
  const model = { ...unsized, maxBatchSize: chosen.batch };
  await layTabular(folder, model);
  return model;
}

async function besideBulk(
  folder: string,
  model: TabularModel,
  context: PartContext,
): Promise<InteractiveFigures> {
  const plan = tabularPlan(context, model, join(folder, 'tabular/1/model.onnx'));
  const rig = await Rig.start({ models: plan.models, ...context.rig });
  try {
    const input = join(folder, 'load.parquet');
    await plan.writeInput(input, context.quick ? LOAD_ROWS.quick : LOAD_ROWS.usual);
    await rig.startWorker({ models: [plan.model], bulk: true });
    return await interactive(
      { rig, plan, input, folder, rowShape: [1, FEATURES], batchRows: model.maxBatchSize },
      context,
    );
  } finally {
    await rig.stop();
  }
}
