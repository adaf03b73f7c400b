/** Every bundled sample through a real HTTP API: model by model, all samples of one at once so that batches form. */
import type { ApiClient } from '../api/api-client.js';
import { samplesFolder } from '../workspace.js';
import type { SampleAnswer } from './sample-answer.js';
import { readSampleSet } from './sample-set.js';
import { askSpeech } from './speech-clips.js';
import { askDirections, askTexts } from './text-lines.js';

export interface SampleReport {
  samples: SampleAnswer[];
  summary: {
    right: number;
    wrong: number;
    /** Requests, all of one row. */
    rows: number;
    elapsed_ms: number;
    rows_per_s: number;
    /** From the start of this process to the first answer; null: none came. */
    first_answer_ms: number | null;
  };
}

/**
 * Asks for one answer while the workers may still be loading, and says when it was there, in milliseconds from the
 * start of this process; null: none came. The samples proper follow when all models are loaded, so that their figures
 * are those of a running fleet.
 */
export async function timeFirstAnswer(api: ApiClient): Promise<number | null> {
  const { textLines } = await readSampleSet(samplesFolder);
  const [answer] = await askDirections(api, textLines.slice(0, 1));
  return answer?.right ? performance.now() : null;
}

export interface SendOptions {
  /** What timeFirstAnswer said. */
  firstAnswerMs: number | null;
  /** Hears which model is asked. */
  say(model: string): void;
}

export async function sendSamples(
  api: ApiClient,
  { firstAnswerMs, say }: SendOptions,
): Promise<SampleReport> {
  const { textLines, speech } = await readSampleSet(samplesFolder);
  const begun = performance.now();
  const samples: SampleAnswer[] = [];
  const stages = [
    ['text-direction', () => askDirections(api, textLines)],
    ['text-recognition', () => askTexts(api, textLines)],
    ['speech-detector', () => askSpeech(api, speech)],
  ] as const;
  for (const [model, ask] of stages) {
    say(model);
    samples.push(...(await ask()));
    // Calls that were cut off are no answers to report.
    api.stop?.throwIfAborted();
  }
  return { samples, summary: summaryOf(samples, performance.now() - begun, firstAnswerMs) };
}

function summaryOf(
  samples: readonly SampleAnswer[],
  elapsedMs: number,
  firstAnswerMs: number | null,
): SampleReport['summary'] {
  const right = samples.filter((sample) => sample.right).length;
  const rows = samples.reduce((sum, sample) => sum + sample.requests, 0);
  return {
    right,
    wrong: samples.length - right,
    rows,
    elapsed_ms: Math.round(elapsedMs),
    rows_per_s: Math.round((rows / elapsedMs) * 10_000) / 10,
    first_answer_ms: firstAnswerMs === null ? null : Math.round(firstAnswerMs),
  };
}
