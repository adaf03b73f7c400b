/** Text lines: each image as the raw body of a request, to the direction classifier and, upright ones, to the recogniser. */
import { splitBytesElements } from '@remuda/schemas';
import type { ApiClient } from '../api/api-client.js';
import { reasonOf } from '../cli-error.js';
import { askModel, firstFloat, outputOf } from './ask-model.js';
import { type SampleAnswer, sampleAnswer } from './sample-answer.js';
import type { TextLine } from './sample-set.js';

/** All at once, so that the worker has rows to put into batches. */
export function askDirections(api: ApiClient, lines: readonly TextLine[]): Promise<SampleAnswer[]> {
  return Promise.all(lines.map((line) => ask(api, line, 'text-direction', 'label', line.direction)));
}

/** The recogniser reads upright lines. */
export function askTexts(api: ApiClient, lines: readonly TextLine[]): Promise<SampleAnswer[]> {
  const upright = lines.filter((line) => line.direction === '0');
  return Promise.all(upright.map((line) => ask(api, line, 'text-recognition', 'text', line.text)));
}

async function ask(
  api: ApiClient,
  { name, image }: TextLine,
  model: string,
  output: string,
  expected: string,
): Promise<SampleAnswer> {
  const about = { sample: name, model, expected };
  try {
    const body = { body: new Uint8Array(image), headers: { 'content-type': 'image/png' } };
    const result = await askModel(api, model, body);
    const [said = new Uint8Array()] = splitBytesElements(outputOf(result, output).bytes);
    const answer = Buffer.from(said).toString('utf8');
    return sampleAnswer({
      ...about,
      answer,
      score: firstFloat(outputOf(result, 'score')),
      results: [result],
    });
  } catch (error) {
    return sampleAnswer({ ...about, answer: reasonOf(error), score: null, results: [] });
  }
}
