/** What a file is, as its name tells. Settings of the job go before it. */
import type { BulkCompression, BulkFormat } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';

export interface DetectedInput {
  format: BulkFormat;
  compression: BulkCompression;
  /** Of CSV, where the name says so: a tab for .tsv. */
  delimiter?: string;
}

const FORMATS: Readonly<Record<string, BulkFormat>> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  csv: 'csv',
  tsv: 'csv',
  parquet: 'parquet',
  pq: 'parquet',
  arrow: 'arrow',
  arrows: 'arrow',
  ipc: 'arrow',
  feather: 'arrow',
  txt: 'list',
  list: 'list',
};
const COMPRESSIONS: Readonly<Record<string, BulkCompression>> = {
  gz: 'gzip',
  gzip: 'gzip',
  zst: 'zstd',
  zstd: 'zstd',
};
/** What sharp decodes. */
export const IMAGE_ENDINGS = ['jpg', 'jpeg', 'png', 'webp', 'gif', 'avif', 'tif', 'tiff'] as const;
const GLOB = /[*?{}[\]]|[!@+]\(/;

const KNOWN =
  'known endings: .jsonl .ndjson (a JSON object a line), .csv .tsv, .parquet .pq, .arrow .ipc .feather, .txt .list (a reference of an image a line), each of the text ones with .gz or .zst behind it; a folder or a glob is images';

/**
 * @param name path, URL (its query is left out) or glob
 * @param folder whether a folder lies there
 * @throws RemudaError invalid_request that lists what is known
 */
export function detectInput(name: string, folder = false): DetectedInput {
  if (folder || name.endsWith('/')) return { format: 'images', compression: 'none' };
  const remote = /^[a-z][a-z0-9+.-]+:\/\//i.test(name);
  const bare = remote ? name.replace(/[?#].*$/, '') : name;
  if (!remote && isGlob(bare)) return globbed(name);
  const endings = bare
    .slice(bare.lastIndexOf('/') + 1)
    .toLowerCase()
    .split('.')
    .slice(1);
  const compression = COMPRESSIONS[endings.at(-1) ?? ''] ?? 'none';
  if (compression !== 'none') endings.pop();
  const ending = endings.at(-1) ?? '';
  const format = isImageEnding(ending) ? 'images' : FORMATS[ending];
  if (format === undefined) throw unknown(name, ending);
  return { format, compression, ...(ending === 'tsv' && { delimiter: '\t' }) };
}

export function isGlob(path: string): boolean {
  return GLOB.test(path);
}

export function isImageEnding(ending: string): boolean {
  return (IMAGE_ENDINGS as readonly string[]).includes(ending.toLowerCase());
}

/** Several files of rows are several jobs, or one file that was joined before. */
function globbed(name: string): DetectedInput {
  const ending = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  if (FORMATS[ending] === undefined && COMPRESSIONS[ending] === undefined)
    return { format: 'images', compression: 'none' };
  throw new RemudaError(
    'invalid_request',
    `"${name}" is a glob of .${ending} files; only images can be given as a glob: start a job for each file, or join them first`,
  );
}

function unknown(name: string, ending: string): RemudaError {
  const what =
    ending === 'json'
      ? 'may be one JSON value, where a JSON object a line is needed (jq -c ".[]" makes it of an array)'
      : 'does not tell by its name what it is';
  return new RemudaError(
    'invalid_request',
    `"${name.replace(/\?.*$/, '')}" ${what}; give the format (jsonl, csv, parquet, arrow, images, list), or rename it; ${KNOWN}`,
  );
}
