/** Where the rows that failed are written unless --errors says otherwise: beside the output. */
import { basename, dirname, join } from 'node:path';

/** scored.parquet → scored.errors.jsonl */
export function errorsPathOf(output: string): string {
  const name = basename(output)
    .replace(/\.(gz|zst|zstd)$/i, '')
    .replace(/\.(jsonl|ndjson|csv|parquet|arrow)$/i, '');
  return join(dirname(output), `${name}.errors.jsonl`);
}
