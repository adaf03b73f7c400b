/** Parquet and Arrow files, opened for the coordinator. Not there yet. */
import { RemudaError } from '../../../errors.js';
import type { OpenedInput, OpenOptions } from '../bulk-input.js';

export async function openColumnar({ read }: OpenOptions): Promise<OpenedInput> {
  throw new RemudaError(
    'unsupported_feature',
    `${read.format} cannot be read yet; give the rows as jsonl or csv`,
  );
}
