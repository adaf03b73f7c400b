/** The encoder of an output: which file of this folder writes which format. */
import type { BulkCompression, BulkOutputFormat } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import type { OutputEncoder } from './bulk-output.js';
import { csvLines } from './csv-lines.js';
import { jsonlLines } from './jsonl-lines.js';
import { type OpenAiJob, openAiLines } from './openai-lines.js';
import { type LayoutOptions, layoutOf } from './output-layout.js';
import { TextEncoder } from './text-output.js';

export interface EncoderOptions extends LayoutOptions {
  format: BulkOutputFormat;
  compression: BulkCompression;
  /** The form of that API's batches, of jsonl: without the rows that failed. */
  openai?: OpenAiJob;
}

/** @throws RemudaError invalid_request: a compression or form that the format does not have */
export async function createEncoder(options: EncoderOptions): Promise<OutputEncoder> {
  const { format, compression, openai } = options;
  checkEncoding(format, compression);
  const layout = layoutOf(options);
  switch (format) {
    case 'jsonl':
      return TextEncoder.of(openai ? openAiLines(layout, openai) : jsonlLines(layout), compression);
    case 'csv':
      return TextEncoder.of(csvLines(layout), compression);
    // Loaded by those who write them alone.
    case 'parquet':
      return new (await import('./parquet-encoder.js')).ParquetEncoder(layout);
    case 'arrow':
      return new (await import('./arrow-encoder.js')).ArrowEncoder(layout);
  }
}

/** What can be said before anything is opened. @throws RemudaError invalid_request */
export function checkEncoding(format: BulkOutputFormat, compression: BulkCompression): void {
  if (compression === 'none' || format === 'jsonl' || format === 'csv') return;
  const why =
    format === 'parquet'
      ? 'Parquet is compressed inside (snappy)'
      : 'Arrow files are read in place and are not compressed';
  throw new RemudaError(
    'invalid_request',
    `output.compression is "${compression}", but ${why}: leave it out, or take the ending ${compression === 'gzip' ? '.gz' : '.zst'} off the name`,
  );
}
