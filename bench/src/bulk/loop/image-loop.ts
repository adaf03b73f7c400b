/**
 * A list of image files in, JSON lines out. Files are read, decoded and resized in libuv's threads, a few batches ahead of
 * the one that runs; what is left for this thread is one pass over the pixels, the run, and reading its scores.
 */
import { createReadStream, createWriteStream, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { decodeGreedy } from '@remuda/core/harness/ctc-decode';
import { decodeImage, makeNormaliser, type Pixels, writePlanes } from '@remuda/core/harness/image-input';
import type { ImageAnswers, ImageLoopJob } from './loop-job.js';
import type { FloatRows, TimedModel } from './timed-model.js';

const BATCHES_AHEAD = 2;

export async function scoreImages(job: ImageLoopJob, model: TimedModel): Promise<number> {
  const { pixels, batch } = job;
  const { height } = pixels;
  const normaliser = makeNormaliser(pixels);
  const answersOf = answerReader(job.answers);
  const output = createWriteStream(job.output);
  let row = 0;
  for await (const images of decodedAhead(job, batch)) {
    const width = batchWidth(images, job);
    const size = 3 * height * width;
    const values = new Float32Array(images.length * size);
    images.forEach((image, i) => {
      writePlanes(image, normaliser, values, i * size, width);
    });
    const scores = await model.run({ values, shape: [images.length, 3, height, width] });
    const lines = answersOf(scores).map((answer) => `${JSON.stringify({ row: row++, ...answer })}\n`);
    output.write(lines.join(''));
  }
  output.end();
  await finished(output);
  return row;
}

/** Batches in order; so many more are on their way. */
async function* decodedAhead(job: ImageLoopJob, batch: number): AsyncGenerator<Pixels[]> {
  const ahead: Promise<Pixels[]>[] = [];
  for await (const paths of batchesOf(job.input, batch)) {
    ahead.push(Promise.all(paths.map((path) => decoded(path, job))));
    if (ahead.length > BATCHES_AHEAD) yield await (ahead.shift() as Promise<Pixels[]>);
  }
  for (const images of ahead) yield await images;
}

async function decoded(path: string, { pixels, width }: ImageLoopJob): Promise<Pixels> {
  return decodeImage(await readFile(path), pixels, { mode: 'keep-ratio', maxWidth: width });
}

async function* batchesOf(list: string, batch: number): AsyncGenerator<string[]> {
  let paths: string[] = [];
  for await (const line of createInterface({ input: createReadStream(list) })) {
    paths.push(line);
    if (paths.length < batch) continue;
    yield paths;
    paths = [];
  }
  if (paths.length > 0) yield paths;
}

/** The one width of the model, or the least multiple that holds every image of the batch. */
function batchWidth(images: readonly Pixels[], { width, widthMultiple }: ImageLoopJob): number {
  if (widthMultiple === undefined) return width;
  return Math.ceil(Math.max(...images.map((image) => image.width)) / widthMultiple) * widthMultiple;
}

type AnswerReader = (scores: FloatRows) => object[];

function answerReader(answers: ImageAnswers): AnswerReader {
  return answers.kind === 'labels' ? labelReader(answers.labels) : textReader(answers.dictionary);
}

function labelReader(labels: readonly string[]): AnswerReader {
  return ({ values, shape: [rows = 0, classes = 0] }) =>
    Array.from({ length: rows }, (_, row) => {
      const probabilities = Array.from(values.subarray(row * classes, (row + 1) * classes));
      const score = Math.max(...probabilities);
      return { label: labels[probabilities.indexOf(score)], score, probabilities };
    });
}

function textReader(dictionary: string): AnswerReader {
  const characters = ['', ...readFileSync(dictionary, 'utf8').replace(/\n$/, '').split('\n'), ' '];
  return ({ values, shape: [rows = 0, steps = 0, classes = 0] }) =>
    Array.from({ length: rows }, (_, row) => {
      const scores = values.subarray(row * steps * classes, (row + 1) * steps * classes);
      const found = decodeGreedy({ scores, steps, classes, blank: 0, logits: false });
      return { text: found.classes.map((index) => characters[index]).join(''), score: found.score };
    });
}
