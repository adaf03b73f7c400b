/** Errors of core, which the API would answer as a problem, as the person at this terminal is told them. */
import { RemudaError } from '@remuda/core/errors';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

/** What is wrong with what was asked for ends with 2, everything else with 1. */
export async function asCliError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof RemudaError)) throw error;
    const code = error.retryable ? EXIT.failed : EXIT.usage;
    throw new CliError(`${error.code}: ${error.message}`, code, { cause: error });
  }
}
