/** The tools of a coordinator as they are in earnest: readers, mapping and writers of this folder's neighbours. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AllowedAddresses } from '../../webhooks/address-rules.js';
import type { BulkFiles } from '../bulk-use-cases.js';
import type { ReadSettings } from '../chunk.js';
import { openInput } from '../input/open-input.js';
import { isRemote } from '../input/remote-uri.js';
import { createRowReader } from '../input/row-reader.js';
import type { BulkSpec } from '../job-record.js';
import { mapTexts, settleMapping } from '../mapping/settle-mapping.js';
import { createErrorsEncoder } from '../output/errors-file.js';
import { chosenSignature } from '../output/output-choice.js';
import { createEncoder } from '../output/output-encoder.js';
import { createDelivery } from './delivery.js';
import type { CoordinatorTools, LocateOptions, OutputJob } from './tools.js';

export interface RealToolsOptions {
  files: BulkFiles;
  signal: AbortSignal;
  /** Addresses beside the public ones that inputs may be fetched from; null: any. */
  allowed: AllowedAddresses | null;
  /** How readers of references (list, images) are told what is allowed. */
  references: Pick<ReadSettings, 'roots' | 'closed' | 'allowed' | 's3'>;
}

export function realTools(options: RealToolsOptions): CoordinatorTools {
  const { files, references } = options;
  return {
    open: (spec, path, work) =>
      openInput({
        ...{ path, compression: spec.input.compression, workFolder: work },
        read: readOf(spec, references),
      }),
    rows: createRowReader(),
    locate: (spec, work, locating) => locate(spec, work, locating, options),
    settle: ({ map, idColumn, parameters, output: { keep } }, columns, signature, { lines }) =>
      settleMapping({
        ...{ columns, signature, lines, keep },
        ...{ ...(map && { map }), ...(idColumn && { idColumn }), ...(parameters && { parameters }) },
      }),
    mapTexts,
    output: jobOutput,
    delivery: (job, parts) => createDelivery(job, parts, { files, signal: options.signal }),
  };
}

function readOf(
  { input: { format, delimiter, types, openai } }: BulkSpec,
  references: RealToolsOptions['references'],
): Partial<ReadSettings> & Pick<ReadSettings, 'format'> {
  return {
    format,
    ...(delimiter && { delimiter }),
    ...(types && { types: types as ReadSettings['types'] }),
    ...(openai && { lines: 'openai' as const }),
    ...(format === 'images' || format === 'list' ? references : {}),
  };
}

async function locate(
  { input: { fileId, uri } }: BulkSpec,
  work: string,
  { signal, progress }: LocateOptions,
  { files, allowed, references }: RealToolsOptions,
): Promise<string> {
  if (fileId !== null) {
    const path = files.pathOf(fileId);
    // For its error, where it has gone.
    if (!(await stat(path).catch(() => null))) await files.get(fileId);
    return path;
  }
  if (!isRemote(uri as string)) return uri as string;
  const to = join(work, 'input');
  const { s3 } = references;
  const options = { to, signal, onProgress: progress, allowed, ...(s3 && { s3 }) };
  // Imported where it is needed: its libraries are a tenth of what starting costs.
  const { fetchInput } = await import('../input/fetch-input.js');
  return (await fetchInput(uri as string, options)).path;
}

async function jobOutput({ spec, signature, mapping, columns }: OutputJob) {
  const { outputs, topK, argmax, keep, format, compression } = spec.output;
  const choice = { ...(outputs && { outputs }), ...(topK && { topK }), argmax };
  const openai = spec.input.openai
    ? { job: spec.id, model: signature.model, version: signature.version }
    : undefined;
  const ids = mapping.idColumn !== null;
  const encoder = await createEncoder({
    ...{ format, compression, ids, outputs: chosenSignature(signature.outputs, choice) },
    keep: keep.map((name) => ({ name, type: columns.find((one) => one.name === name)?.type ?? null })),
    ...(openai && { openai }),
  });
  const errors = await createErrorsEncoder({ ids, ...(openai && { openai }) });
  return {
    encoder,
    errorLines: async (result: Parameters<typeof encoder.encode>[0]) =>
      result.failures.length > 0 ? (await errors.encode(result)).bytes : null,
  };
}
