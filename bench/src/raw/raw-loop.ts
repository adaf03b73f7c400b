/**
 * The raw loops themselves: `session.run` over and over, at full speed, spinning threads allowed. Each loop counts the
 * rows of whole runs and the time that these took.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeImage, makeNormaliser, type Pixels, writePlanes } from '@remuda/core/harness/image-input';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { LoopRate, LoopShape, RawImageJob, RawLoopJob, RawPacedJob, RawTensorJob } from './raw-job.js';

const WARMUP_RUNS = 3;
/** Batches of images on their way through the decoder while another runs. */
const DECODED_AHEAD = 2;

/** Measures every shape of a job in this thread. */
export async function measureShapes(job: RawLoopJob): Promise<LoopRate[]> {
  const rates: LoopRate[] = [];
  for (const shape of job.shapes) rates.push({ ...shape, ...(await measure(job, shape)) });
  return rates;
}

async function measure(job: RawLoopJob, shape: LoopShape): Promise<Omit<LoopRate, keyof LoopShape>> {
  const session = await openSession(job.modelPath, shape.threads);
  try {
    const step =
      job.kind === 'tensor' ? tensorStep(job, shape, session) : await imageStep(job, shape, session);
    for (let i = 0; i < WARMUP_RUNS; i++) await step();
    const cpu = process.cpuUsage();
    const begun = performance.now();
    let rows = 0;
    while (performance.now() - begun < job.seconds * 1000) {
      await step();
      rows += shape.batch;
    }
    const seconds = (performance.now() - begun) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    return { rowsPerS: rows / seconds, cpuMsPerRow: (user + system) / 1000 / rows };
  } finally {
    await session.release();
  }
}

function openSession(modelPath: string, threads: number): Promise<InferenceSession> {
  return InferenceSession.create(modelPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
}

type Step = () => Promise<unknown>;

function tensorStep({ rowShape }: RawTensorJob, { batch }: LoopShape, session: InferenceSession): Step {
  const input = session.inputNames[0] as string;
  const feeds = { [input]: new Tensor('float32', noise(batch, rowShape), [batch, ...rowShape.slice(1)]) };
  return () => session.run(feeds);
}

async function imageStep(job: RawImageJob, { batch }: LoopShape, session: InferenceSession): Promise<Step> {
  const files = await Promise.all(job.files.map((file) => readFile(file)));
  const input = session.inputNames[0] as string;
  const normaliser = makeNormaliser(job.pixels);
  const { height } = job.pixels;
  let next = 0;
  const decode = (): Promise<Pixels[]> =>
    Promise.all(
      Array.from({ length: batch }, () => {
        const file = files[next++ % files.length] as Buffer;
        return decodeImage(file, job.pixels, { mode: 'keep-ratio', maxWidth: job.width });
      }),
    );
  const ahead = Array.from({ length: DECODED_AHEAD }, decode);
  return async () => {
    const images = await (ahead.shift() as Promise<Pixels[]>);
    ahead.push(decode());
    const width = batchWidth(images, job);
    const rowSize = 3 * height * width;
    const values = new Float32Array(batch * rowSize);
    images.forEach((image, row) => {
      writePlanes(image, normaliser, values, row * rowSize, width);
    });
    await session.run({ [input]: new Tensor('float32', values, [batch, 3, height, width]) });
  };
}

/** The one width of the model, or the least multiple that holds every image of the batch. */
function batchWidth(images: readonly Pixels[], { width, widthMultiple }: RawImageJob): number {
  if (widthMultiple === undefined) return width;
  return Math.ceil(Math.max(...images.map((image) => image.width)) / widthMultiple) * widthMultiple;
}

/** Milliseconds of single runs with a pause before each; threads do not spin, as where a machine is shared. */
export async function measurePaced({ modelPath, rowShape, runs, pauseMs }: RawPacedJob): Promise<number[]> {
  const session = await InferenceSession.create(modelPath, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  });
  const step = tensorStep({ rowShape } as RawTensorJob, { batch: 1, threads: 1 }, session);
  for (let i = 0; i < WARMUP_RUNS; i++) await step();
  const times: number[] = [];
  for (let i = 0; i < runs; i++) {
    await sleep(pauseMs);
    const begun = performance.now();
    await step();
    times.push(performance.now() - begun);
  }
  return times;
}

/** Numbers of an ordinary size; a fixed seed, so that each run sees the same. */
export function noise(rows: number, rowShape: readonly number[]): Float32Array {
  const count = rowShape.slice(1).reduce((product, dim) => product * dim, rows);
  let seed = 1;
  return Float32Array.from({ length: count }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 31 - 1;
  });
}
