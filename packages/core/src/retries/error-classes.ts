/**
 * The class of each error that an accepted request can end with, what of it is tried again, and whether a dead letter
 * is kept. The one place that decides; docs/retries.md shows the same table and is tested against it.
 */
import type { ErrorClass, ErrorCode, HarnessConfig, RetryClass, RetryRule } from '@remuda/schemas';

const CODES: Partial<Record<ErrorCode, ErrorClass>> = {
  item_rejected: 'input',
  invalid_input: 'input',
  invalid_parameter: 'input',
  inference_failed: 'model',
  output_mismatch: 'model',
  runner_crashed: 'crash',
  run_timeout: 'timeout',
  worker_lost: 'infrastructure',
  model_load_failed: 'infrastructure',
  golden_mismatch: 'infrastructure',
  payload_missing: 'infrastructure',
  version_not_found: 'infrastructure',
  model_not_loaded: 'infrastructure',
  source_unavailable: 'infrastructure',
  source_invalid: 'infrastructure',
  store_unavailable: 'infrastructure',
  store_full: 'infrastructure',
  internal: 'infrastructure',
  deadline_exceeded: 'ended',
  cancelled: 'ended',
  // Its model was taken out while it waited.
  model_not_found: 'ended',
};

/** What nobody has foreseen is taken for trouble around the model: it is tried again, and kept. */
export function classOf(code: string): ErrorClass {
  return CODES[code as ErrorCode] ?? 'infrastructure';
}

/** Codes of a class, for the documentation and its test. */
export function codesOf(errorClass: ErrorClass): ErrorCode[] {
  return (Object.keys(CODES) as ErrorCode[]).filter((code) => CODES[code] === errorClass);
}

/**
 * A crash has been tried a second time, alone, before it is blamed on an item (inference/run-batch.ts), and a time-out
 * would take as long again; the model's own failures are the same the next time. So only trouble around it is tried
 * again by default.
 */
export const DEFAULT_RULES: Readonly<Record<RetryClass, RetryRule>> = {
  model: { attempts: 1, first_ms: 250, max_ms: 15_000 },
  crash: { attempts: 1, first_ms: 1_000, max_ms: 60_000 },
  timeout: { attempts: 1, first_ms: 1_000, max_ms: 60_000 },
  infrastructure: { attempts: 5, first_ms: 250, max_ms: 15_000 },
};

const NEVER: RetryRule = { attempts: 1, first_ms: 0, max_ms: 0 };

/** What holds for an error of a model: its own rule over the default. */
export function ruleFor(code: string, config?: Pick<HarnessConfig, 'retries'>): RetryRule {
  const errorClass = classOf(code);
  if (errorClass === 'input' || errorClass === 'ended') return NEVER;
  return { ...DEFAULT_RULES[errorClass], ...config?.retries?.[errorClass] };
}

/** Whether what failed so is kept with its inputs: not what was wrong with the input, nor what was not wanted any more. */
export function isDeadLetter(code: string): boolean {
  const errorClass = classOf(code);
  return errorClass !== 'input' && errorClass !== 'ended';
}

/**
 * Pause before attempt `failures + 1`, in milliseconds: exponential with jitter over its upper half, so that workers
 * that fail together do not return together.
 * @param failures attempts that have failed, from 1
 */
export function pauseMs(rule: RetryRule, failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(rule.max_ms, rule.first_ms * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}
