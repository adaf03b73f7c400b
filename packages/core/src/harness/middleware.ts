/** Wraps any harness so that its loads and runs are seen from outside: for timings, logs and metrics. */
import type { HarnessBatch, InferenceHarness, RunContext } from './harness.js';

/** Each call is told when it has ended; `error` is set where it failed. An observer must not throw. */
export interface HarnessObserver {
  loaded?(event: { modelId: string; seconds: number; error?: unknown }): void;
  ran?(event: { modelId: string; batchId: string; rows: number; seconds: number; error?: unknown }): void;
}

/** The same harness, observed. */
export function observed(harness: InferenceHarness, observer: HarnessObserver): InferenceHarness {
  return {
    get modelId() {
      return harness.modelId;
    },
    get isLoaded() {
      return harness.isLoaded;
    },
    load: (source) =>
      timed(
        () => harness.load(source),
        (seconds, error) => observer.loaded?.({ modelId: source.modelId, seconds, error }),
      ),
    warmUp: () => harness.warmUp(),
    run: (batch: HarnessBatch, context: RunContext) =>
      timed(
        () => harness.run(batch, context),
        (seconds, error) =>
          observer.ran?.({
            modelId: harness.modelId,
            batchId: context.batchId,
            rows: batch.rows,
            seconds,
            error,
          }),
      ),
    unload: () => harness.unload(),
    status: () => harness.status(),
  };
}

async function timed<T>(
  call: () => Promise<T>,
  ended: (seconds: number, error?: unknown) => void,
): Promise<T> {
  const start = performance.now();
  try {
    const result = await call();
    ended((performance.now() - start) / 1000);
    return result;
  } catch (error) {
    ended((performance.now() - start) / 1000, error);
    throw error;
  }
}
