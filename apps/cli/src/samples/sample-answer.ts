/** What came of one sample, as it is reported: the JSON of `up --samples --json` is made of these. */
import type { InferenceResult } from '@remuda/schemas';

/** Over the requests of a sample; a text line has one, a speech clip one for each window. */
export interface Spread {
  mean: number;
  max: number;
}

export interface SampleAnswer {
  sample: string;
  model: string;
  /** What the model said, or the error in words. */
  answer: string;
  expected: string;
  right: boolean;
  score: number | null;
  requests: number;
  /** null: no request of it succeeded. */
  batch_rows: Spread | null;
  queue_ms: Spread | null;
  run_ms: Spread | null;
  total_ms: Spread | null;
}

export interface GivenAnswer {
  sample: string;
  model: string;
  expected: string;
  answer: string;
  score: number | null;
  results: readonly InferenceResult[];
}

export function sampleAnswer({ results, ...given }: GivenAnswer): SampleAnswer {
  const metrics = results.flatMap((result) => (result.metrics ? [result.metrics] : []));
  return {
    ...given,
    right: given.answer === given.expected,
    requests: results.length,
    batch_rows: spreadOf(metrics.map((entry) => entry.batch_rows)),
    queue_ms: spreadOf(metrics.map((entry) => entry.queue_ms)),
    run_ms: spreadOf(metrics.map((entry) => entry.run_ms)),
    total_ms: spreadOf(metrics.map((entry) => entry.total_ms)),
  };
}

function spreadOf(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  return { mean: values.reduce((sum, value) => sum + value, 0) / values.length, max: Math.max(...values) };
}
