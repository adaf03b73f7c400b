/** Rows of Parquet and Arrow files, read in the runner. Not there yet. */
import { RemudaError } from '../../../errors.js';
import type { RowReader } from '../bulk-input.js';

export function createColumnarReader(): RowReader {
  return {
    read: async ({ read }) => {
      throw new RemudaError(
        'unsupported_feature',
        `${read.format} cannot be read yet; give the rows as jsonl or csv`,
      );
    },
    close: async () => {},
  };
}
