/**
 * The one door to the readers of the coordinator: each format is imported when a file of it is opened, since the
 * libraries of some are large. The runner's side is row-reader.ts.
 */
import { RemudaError } from '../../errors.js';
import type { OpenedInput, OpenOptions } from './bulk-input.js';

/** @throws RemudaError file_not_found, invalid_file, invalid_request, unsupported_feature */
export async function openInput(options: OpenOptions): Promise<OpenedInput> {
  const { format } = options.read;
  if (format === 'parquet' || format === 'arrow') {
    refuseCompression(options);
    return (await import('./columnar/open-columnar.js')).openColumnar(options);
  }
  if (format === 'csv') return (await import('./text/open-csv.js')).openCsv(options);
  if (format === 'jsonl') return (await import('./text/open-jsonl.js')).openJsonl(options);
  if (format === 'list') return (await import('./images/open-list.js')).openList(options);
  return (await import('./images/open-images.js')).openImages(options);
}

/** They are read by jumping about in them, which a stream of packed bytes does not allow. */
function refuseCompression({ path, compression, read }: OpenOptions): void {
  if (compression === 'none') return;
  throw new RemudaError(
    'invalid_request',
    `${path}: a ${read.format} file cannot be read through ${compression}; unpack it first (${compression === 'gzip' ? 'gunzip' : 'unzstd'}), it is compressed inside`,
  );
}
