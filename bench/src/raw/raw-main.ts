/** Entry of a raw side: one loop in the main thread, or several, each in a worker thread, whose rates are added up. */
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { serveTask } from '../rig/node-process.js';
import type { LoopRate, RawJob, RawLoopJob } from './raw-job.js';
import { measurePaced, measureShapes } from './raw-loop.js';

if (isMainThread) serveTask<RawJob, LoopRate[] | number[]>(measure);
else parentPort?.postMessage(await measureShapes(workerData as RawLoopJob));

function measure(job: RawJob): Promise<LoopRate[] | number[]> {
  if (job.kind === 'paced') return measurePaced(job);
  return job.loops === 1 ? measureShapes(job) : measureSideBySide(job);
}

/** Shape by shape, so that all loops always run the same. */
async function measureSideBySide(job: RawLoopJob): Promise<LoopRate[]> {
  const rates: LoopRate[] = [];
  for (const shape of job.shapes) {
    const loops = Array.from({ length: job.loops }, () => inThread({ ...job, shapes: [shape] }));
    const found = (await Promise.all(loops)).map((measured) => measured[0] as LoopRate);
    const rowsPerS = found.reduce((sum, rate) => sum + rate.rowsPerS, 0);
    // Each loop has seen the CPU time of the whole process, over its own rows alone.
    const cpuMsPerRow = found.reduce((sum, rate) => sum + rate.cpuMsPerRow, 0) / job.loops ** 2;
    rates.push({ ...shape, rowsPerS, cpuMsPerRow });
  }
  return rates;
}

function inThread(job: RawLoopJob): Promise<LoopRate[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(fileURLToPath(import.meta.url), { workerData: job });
    thread.once('message', resolve);
    thread.once('error', reject);
  });
}
