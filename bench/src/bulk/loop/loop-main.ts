/** Entry of the hand-written loop: loads the model, runs it once, and scores the file against the clock. */
import { InferenceSession } from 'onnxruntime-node';
import { serveTask } from '../../rig/node-process.js';
import { scoreImages } from './image-loop.js';
import type { BulkLoopJob, BulkLoopOutcome } from './loop-job.js';
import { scoreTable } from './table-loop.js';
import { TimedModel } from './timed-model.js';

serveTask<BulkLoopJob, BulkLoopOutcome>(score);

async function score(job: BulkLoopJob): Promise<BulkLoopOutcome> {
  const session = await InferenceSession.create(job.modelPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: job.threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
  const model = new TimedModel(session);
  await model.warmUp(job.kind === 'table' ? [job.batch, 30] : [job.batch, 3, job.pixels.height, job.width]);
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const rows = job.kind === 'table' ? await scoreTable(job, model) : await scoreImages(job, model);
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    rows,
    seconds,
    modelSeconds: model.seconds,
    cpuSeconds: (user + system) / 1e6,
    peakRssMb: process.resourceUsage().maxRSS / 1024,
  };
}
