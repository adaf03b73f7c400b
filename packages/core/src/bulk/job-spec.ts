/** What was asked for as the spec of a job: every default settled, every path absolute. */
import { stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import {
  BATCH_ENDPOINT,
  BULK_OUTPUT_FORMATS,
  type BulkCompression,
  type BulkFormat,
  type BulkJobCreate,
  type BulkOutputFormat,
  type OpenAiBatchCreate,
} from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { webhookOf } from '../requests/prepare-request.js';
import type { BulkCaller, BulkFiles } from './bulk-use-cases.js';
import { detectInput } from './input/detect.js';
import { isRemote } from './input/remote-uri.js';
import type { BulkSpec, BulkSpecInput, BulkSpecOutput } from './job-record.js';

export interface BulkAsk {
  id: string;
  caller: BulkCaller;
  /** Unix milliseconds. */
  now: number;
  filesFolder: string;
  files: Pick<BulkFiles, 'get'>;
}

const HOUR_MS = 3_600_000;

/** @throws RemudaError invalid_request, file_not_found */
export async function specOf(wanted: BulkJobCreate, ask: BulkAsk): Promise<BulkSpec> {
  const { model, version, map, id_column, parameters, max_errors, chunk_rows, webhook, metadata } = wanted;
  const input = await inputOf(wanted.input, ask);
  const output = outputOf(wanted.output, input);
  checkPlaces(input, output);
  return {
    ...common(ask, output),
    ...{ model, input, output, endpoint: BATCH_ENDPOINT, completionWindow: 'none', expiresAt: null },
    ...{ ...(version && { version }), ...(map && { map }), ...(id_column && { idColumn: id_column }) },
    ...(parameters && { parameters }),
    ...(max_errors !== undefined && { maxErrors: max_errors }),
    ...(chunk_rows && { chunkRows: chunk_rows }),
    ...(webhook && { webhook: webhookOf(webhook) }),
    metadata: metadata ?? null,
  };
}

export async function specOfOpenAi(wanted: OpenAiBatchCreate, ask: BulkAsk): Promise<BulkSpec> {
  const { input_file_id, endpoint, completion_window, metadata, output_expires_after } = wanted;
  const output: BulkSpecOutput = {
    ...{ uri: null, errorsUri: null, format: 'jsonl', compression: 'none' },
    ...{ overwrite: false, unordered: false, argmax: false, keep: [] },
    keptS: output_expires_after?.seconds ?? null,
  };
  const input: BulkSpecInput = {
    ...{ fileId: input_file_id, uri: null, format: 'jsonl', compression: 'none', openai: true },
  };
  return {
    ...common(ask, output),
    ...{ model: null, input, output, endpoint, completionWindow: completion_window },
    expiresAt: ask.now + Number.parseInt(completion_window, 10) * HOUR_MS,
    metadata: metadata ?? null,
  };
}

/** The file of errors takes the place of what is there without a question, and must not be another file of the job. */
function checkPlaces({ uri: from }: BulkSpecInput, { uri, errorsUri }: BulkSpecOutput): void {
  if (errorsUri === null || (errorsUri !== uri && errorsUri !== from)) return;
  throw new RemudaError(
    'invalid_request',
    `output.errors_uri: ${errorsUri} is the ${errorsUri === uri ? 'output' : 'input'} of the job, too; name another file`,
    { path: 'output.errors_uri' },
  );
}

function common({ id, caller, now, filesFolder }: BulkAsk, output: BulkSpecOutput) {
  const { tenant, keyId, traceId } = caller;
  return { id, tenant, keyId, traceId, createdAt: now, work: workFolderOf(id, output, filesFolder) };
}

/** Beside a local output, so that the file need not be copied to get there; else in the folder of the server. */
function workFolderOf(id: string, { uri }: BulkSpecOutput, filesFolder: string): string {
  if (uri === null || isRemote(uri)) return join(resolve(filesFolder), 'batches', id);
  return join(dirname(uri), `.${basename(uri)}.remuda`);
}

async function inputOf(
  { file_id, uri, format, compression, delimiter, types }: BulkJobCreate['input'],
  { files, caller }: BulkAsk,
): Promise<BulkSpecInput> {
  const fileId = file_id ?? null;
  const name = fileId === null ? (uri as string) : (await files.get(fileId, caller.tenant)).filename;
  const path = fileId !== null || isRemote(name) ? name : resolve(name);
  const folder =
    fileId === null && !isRemote(name) && ((await stat(path).catch(() => null))?.isDirectory() ?? false);
  const found = format && compression ? { format, compression } : detected(name, folder, format, compression);
  return {
    ...{ fileId, uri: fileId === null ? path : null, openai: false },
    ...{ format: format ?? found.format, compression: compression ?? found.compression },
    ...((delimiter ?? found.delimiter) ? { delimiter: delimiter ?? found.delimiter } : {}),
    ...(types && { types }),
  };
}

interface Detected {
  format: BulkFormat;
  compression: BulkCompression;
  delimiter?: string | undefined;
}

/** Where the format is said, a name that tells nothing is none the worse. */
function detected(
  name: string,
  folder: boolean,
  format: BulkFormat | undefined,
  compression: BulkCompression | undefined,
): Detected {
  if (format === undefined) return detectInput(name, folder);
  return { format, compression: compression ?? compressionOf(name) };
}

function outputOf(wanted: BulkJobCreate['output'], input: BulkSpecInput): BulkSpecOutput {
  const { format, compression, overwrite, unordered, outputs, top_k, argmax, keep } = wanted;
  const uri = wanted.uri === undefined ? null : absolute(wanted.uri);
  const byName = uri === null ? null : formatOf(uri);
  const asInput = (BULK_OUTPUT_FORMATS as readonly string[]).includes(input.format)
    ? (input.format as BulkOutputFormat)
    : 'jsonl';
  return {
    ...{ uri, overwrite, unordered, argmax, keep, keptS: null },
    errorsUri: wanted.errors_uri === undefined ? errorsBeside(uri) : absolute(wanted.errors_uri),
    format: format ?? byName ?? asInput,
    compression: compression ?? (uri === null ? 'none' : compressionOf(uri)),
    ...(outputs && { outputs }),
    ...(top_k && { topK: top_k }),
  };
}

function errorsBeside(uri: string | null): string | null {
  if (uri === null) return null;
  const [, name = uri, query = ''] = /^([^?]*)(\?.*)?$/.exec(uri) ?? [];
  return `${bare(name)}.errors.jsonl${query}`;
}

/** Without the endings that tell what it is. */
function bare(name: string): string {
  const unpacked = compressionOf(name) === 'none' ? name : name.slice(0, -extname(name).length);
  return formatOf(unpacked) === null ? unpacked : unpacked.slice(0, -extname(unpacked).length);
}

const FORMAT_ENDINGS: Readonly<Record<string, BulkOutputFormat>> = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.csv': 'csv',
  '.parquet': 'parquet',
  '.pq': 'parquet',
  '.arrow': 'arrow',
  '.feather': 'arrow',
  '.ipc': 'arrow',
};

function formatOf(name: string): BulkOutputFormat | null {
  const path = name.replace(/\?.*$/, '');
  const unpacked = compressionOf(path) === 'none' ? path : path.slice(0, -extname(path).length);
  return FORMAT_ENDINGS[extname(unpacked).toLowerCase()] ?? null;
}

function compressionOf(name: string): BulkCompression {
  const ending = extname(name.replace(/\?.*$/, '')).toLowerCase();
  if (ending === '.gz' || ending === '.gzip') return 'gzip';
  return ending === '.zst' || ending === '.zstd' ? 'zstd' : 'none';
}

function absolute(uri: string): string {
  return isRemote(uri) ? uri : resolve(uri);
}
