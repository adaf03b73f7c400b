/** How errors of accepted requests are sorted, and what of them is tried again. The rules that hold: core/retries. */
import * as z from 'zod';

export const ERROR_CLASSES = ['input', 'model', 'crash', 'timeout', 'infrastructure', 'ended'] as const;
export const ErrorClass = z
  .enum(ERROR_CLASSES)
  .describe(
    'input: the item itself. model: the model failed on it. crash: it killed the runner. timeout: its run took too long. infrastructure: what is around the model failed. ended: cancelled, or its deadline passed.',
  );
export type ErrorClass = z.infer<typeof ErrorClass>;

/** The classes that can be tried again. */
export const RetryClass = ErrorClass.exclude(['input', 'ended']);
export type RetryClass = z.infer<typeof RetryClass>;

export const MOST_ATTEMPTS = 20;

export const RetryRule = z
  .strictObject({
    attempts: z
      .int()
      .min(1)
      .max(MOST_ATTEMPTS)
      .describe('Attempts in all: 1 is no second one. Raise it for a model that fails by chance.'),
    first_ms: z.int().min(0).max(600_000).describe('Pause before the second attempt, in milliseconds.'),
    max_ms: z.int().min(0).max(3_600_000).describe('Longest pause; each is twice the one before.'),
  })
  .meta({ id: 'RetryRule' });
export type RetryRule = z.infer<typeof RetryRule>;

export const Retries = z
  .partialRecord(RetryClass, RetryRule.partial())
  .describe('What differs from the defaults, by class of error; see docs/retries.md.');
export type Retries = z.infer<typeof Retries>;
