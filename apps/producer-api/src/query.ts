/** Values in a query are text: the schemas that turn them into what they mean. */
import * as z from 'zod';

/** A whole number within limits. */
export function integerText(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: `a whole number from ${min} to ${max}` })
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .meta({ type: 'integer', minimum: min, maximum: max });
}
