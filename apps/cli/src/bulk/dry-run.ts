/** `--dry-run`. */
import type { Scoring } from './score-api.js';

export async function dryRun(_scoring: Scoring): Promise<number> {
  throw new Error('not there yet');
}
