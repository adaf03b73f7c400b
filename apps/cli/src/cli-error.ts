/** An error that is meant for the person at the terminal: its message is all that is shown, and it says what to do. */
import { EXIT } from './exit-codes.js';

export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The person asked for the end before the work was done: no failure. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** The command line itself is wrong. */
export function usageError(message: string): CliError {
  return new CliError(message, EXIT.usage);
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
