/** What the ending of a name says of a file: format and compression. */
import type { BulkCompression, BulkFormat, BulkOutputFormat } from '@remuda/schemas';

export interface NamedFormat {
  format: BulkFormat | undefined;
  compression: BulkCompression;
}

const FORMATS: Readonly<Record<string, BulkFormat>> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  csv: 'csv',
  parquet: 'parquet',
  arrow: 'arrow',
  arrows: 'arrow',
  feather: 'arrow',
  ipc: 'arrow',
  txt: 'list',
  list: 'list',
};

export function formatOfName(name: string): NamedFormat {
  const compression = /\.gz$/i.test(name) ? 'gzip' : /\.(zst|zstd)$/i.test(name) ? 'zstd' : 'none';
  const plain = compression === 'none' ? name : name.replace(/\.[^.]*$/, '');
  const ending = /\.([^./\\]+)$/.exec(plain)?.[1]?.toLowerCase() ?? '';
  return { format: isImageName(plain) ? 'images' : FORMATS[ending], compression };
}

export function isImageName(name: string): boolean {
  return /\.(png|jpe?g|webp|gif|tiff?|avif|bmp)$/i.test(name);
}

export function isOutputFormat(format: BulkFormat | undefined): format is BulkOutputFormat {
  return format === 'jsonl' || format === 'csv' || format === 'parquet' || format === 'arrow';
}
