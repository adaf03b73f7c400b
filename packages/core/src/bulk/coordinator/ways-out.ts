/** How a coordinator leaves off, when it does not simply go on to the end of its job. */
import type { ItemError } from '@remuda/schemas';
import { RemudaError, toItemError } from '../../errors.js';

/** What is done stays; the job goes on with :resume once the reason has passed. */
export class PauseJob extends Error {
  override readonly name = 'PauseJob';
  readonly reason: ItemError;
  constructor(reason: ItemError) {
    super(reason.message);
    this.reason = reason;
  }
}

/** A newer life has the job, or the job is gone: nothing may be written any more. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/** The worker stops: another goes on. */
export class Left extends Error {
  override readonly name = 'Left';
}

/** Also before the first row: what has been fetched is kept. */
const ALWAYS_PASSES = new Set(['disk_full', 'source_unavailable']);
const PASSES = new Set(['output_exists', 'model_not_loaded', 'model_not_found', 'version_not_found']);

/** An error as the end or the pause that it means. @param begun rows have been run: there is something to go on with */
export function wayOut(error: unknown, begun: boolean): PauseJob | unknown {
  if (error instanceof PauseJob || !(error instanceof RemudaError)) return error;
  if (ALWAYS_PASSES.has(error.code) || (begun && PASSES.has(error.code)))
    return new PauseJob(toItemError(error));
  return error;
}
