/**
 * Where the files of a job go at the end: to a path, to S3, or into the file store of the server. Done again after a crash
 * it gives the same: files of the server have ids that are made from the job.
 */
import { createHash } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { Patience } from '../../repository/sources/patience.js';
import type { BulkFiles } from '../bulk-use-cases.js';
import type { StoredBulkJob } from '../job-record.js';
import { checkTarget, deliver, parseTarget } from '../output/output-target.js';
import type { Delivery, DeliveryFiles } from './tools.js';

export interface DeliveryDeps {
  files: Pick<BulkFiles, 'adopt'>;
  signal: AbortSignal;
}

export function createDelivery(job: StoredBulkJob, parts: DeliveryFiles, deps: DeliveryDeps): Delivery {
  return job.spec.output.uri === null ? intoStore(job, parts, deps) : toTarget(job, parts, deps);
}

function toTarget(
  { spec: { output } }: StoredBulkJob,
  parts: DeliveryFiles,
  { signal }: DeliveryDeps,
): Delivery {
  const place = parts.whole ? (output.uri as string) : incompleteUri(output.uri as string);
  const target = parseTarget(place);
  const errors = parseTarget(output.errorsUri as string);
  const patience = new Patience();
  const options = (overwrite: boolean) => ({ overwrite, patience, signal });
  return {
    check: async () => {
      await checkTarget(target, options(output.overwrite || !parts.whole));
      await checkTarget(errors, options(true));
    },
    async give(failed, again) {
      if (failed) await deliver(parts.errors, errors, options(true));
      // Of a round before, in which some had failed.
      else if (again && errors.kind === 'path') await rm(errors.path, { force: true });
      await deliver(parts.output, target, options(again || output.overwrite || !parts.whole));
      if (parts.whole && target.kind === 'path') await rm(incompleteUri(target.path), { force: true });
      return {
        ...{ outputUri: place, outputFileId: null, errorFileId: null },
        errorsUri: failed ? output.errorsUri : null,
      };
    },
  };
}

/** Where an output goes of which rows are missing: a query of S3 stays at the end. */
export function incompleteUri(uri: string): string {
  return uri.startsWith('s3://') ? uri.replace(/(\?.*)?$/, '.incomplete$1') : `${uri}.incomplete`;
}

function intoStore(job: StoredBulkJob, parts: DeliveryFiles, { files }: DeliveryDeps): Delivery {
  const { spec } = job;
  const { tenant, output } = spec;
  const adopt = async (kind: 'output' | 'errors', path: string, name: string): Promise<string> => {
    const id = fileIdOf(spec.id, spec.createdAt, `${kind}.${parts.mark}`);
    const facts = { id, filename: name, purpose: 'batch_output' as const, tenant, keptS: output.keptS };
    return (await files.adopt(path, facts)).id;
  };
  return {
    check: async () => undefined,
    async give(failed) {
      const ending = endingOf(output.format, output.compression);
      const errorFileId = failed ? await adopt('errors', parts.errors, `${spec.id}_errors.jsonl`) : null;
      // As that API has it: where no row has an answer there is no file of answers.
      const empty = spec.input.openai && ((await stat(parts.output).catch(() => null))?.size ?? 1) === 0;
      const outputFileId = empty ? null : await adopt('output', parts.output, `${spec.id}_output.${ending}`);
      return { outputUri: null, outputFileId, errorFileId, errorsUri: null };
    },
  };
}

function endingOf(format: string, compression: string): string {
  return `${format}${compression === 'gzip' ? '.gz' : compression === 'zstd' ? '.zst' : ''}`;
}

/** As newBulkFileId() makes them: the time first, then what tells it from others. */
function fileIdOf(job: string, createdAt: number, what: string): string {
  const number = BigInt(`0x${createHash('sha256').update(`${job} ${what}`).digest('hex')}`);
  return `file-${createdAt.toString(36).padStart(9, '0')}${number.toString(36).padStart(50, '0').slice(-12)}`;
}
