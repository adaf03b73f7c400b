/**
 * The options of `remuda score` as a bulk job: what is read, what is written, and what the job is asked for. Everything
 * that can be wrong without asking anybody is told here, before a byte is sent.
 */
import { existsSync } from 'node:fs';
import { type DetectedInput, detectInput } from '@remuda/core/bulk/input/detect';
import {
  BULK_OUTPUT_FORMATS,
  type BulkColumnType,
  type BulkCompression,
  type BulkFormat,
  BulkJobCreate,
  type BulkJobCreateInput,
  type BulkOutputFormat,
} from '@remuda/schemas';
import { reasonOf, usageError } from '../cli-error.js';
import type { ApiOptions } from '../commands/context.js';
import type { NamedValue } from '../commands/option-values.js';
import { errorsPathOf } from './errors-path.js';
import { type InputPlace, inputPlace, type OutputPlace, outputPlace } from './places.js';

export interface ScoreOptions extends ApiOptions {
  model?: string;
  in?: string;
  out?: string;
  errors?: string;
  map?: NamedValue[];
  types?: Record<string, BulkColumnType>;
  keep?: string[];
  idColumn?: string;
  outputs?: string[];
  topK?: number;
  argmax?: boolean;
  unordered?: boolean;
  overwrite?: boolean;
  format?: BulkFormat;
  outFormat?: BulkOutputFormat;
  delimiter?: string;
  maxErrors?: number | string;
  priority?: number;
  chunkRows?: number;
  parameters?: Record<string, unknown>;
  webhook?: string;
  idempotencyKey?: string;
  detach?: boolean;
  dryRun?: boolean;
  local?: boolean;
  workers?: number;
  resume?: string;
  models?: string;
}

export interface ScorePlan {
  model: string;
  version: string | undefined;
  input: InputPlace;
  output: OutputPlace;
  /** Of the rows that fail; undefined: beside the output. */
  errors: OutputPlace | undefined;
  /** All that the job is asked for but where it reads and writes. */
  job: Omit<BulkJobCreateInput, 'input'> & { input: Omit<BulkJobCreateInput['input'], 'uri' | 'file_id'> };
}

/** @throws CliError (2) for what is wrong or missing */
export function scorePlan(options: ScoreOptions, cwd: string): ScorePlan {
  const [model, version] = modelOf(needed(options.model, '--model', 'NAME or NAME@VERSION'));
  const input = inputPlace(needed(options.in, '--in', 'a file, folder, glob, address, or "-"'), cwd);
  const output = options.out === undefined && options.dryRun ? NO_OUTPUT : outputOf(options, cwd);
  const errors = options.errors === undefined ? undefined : outputPlace(options.errors, cwd);
  if (!options.dryRun) refuseExisting([output, errors ?? errorsBeside(output)], options.overwrite === true);
  const job = jobOf(options, { model, version, input, output });
  refuseInvalid(job);
  return { model, version, input, output, errors, job };
}

const NO_OUTPUT: OutputPlace = { kind: 'file', path: 'scored.jsonl' };

function outputOf({ out }: ScoreOptions, cwd: string): OutputPlace {
  return outputPlace(needed(out, '--out', 'a path or s3://bucket/key'), cwd);
}

/** Of an output that lies here. */
export function errorsBeside(output: OutputPlace | undefined): OutputPlace | undefined {
  return output?.kind === 'file' ? { kind: 'file', path: errorsPathOf(output.path) } : undefined;
}

function needed(value: string | undefined, option: string, what: string): string {
  if (value !== undefined && value !== '') return value;
  throw usageError(`${option} is missing: ${what}.`);
}

function modelOf(text: string): [string, string | undefined] {
  const at = text.lastIndexOf('@');
  return at > 0 ? [text.slice(0, at), text.slice(at + 1)] : [text, undefined];
}

export function refuseExisting(places: readonly (OutputPlace | undefined)[], overwrite: boolean): void {
  for (const place of places) {
    if (overwrite || place?.kind !== 'file' || !existsSync(place.path)) continue;
    throw usageError(`${place.path} is there already: give another name, or --overwrite.`);
  }
}

interface Places {
  model: string;
  version: string | undefined;
  input: InputPlace;
  output: OutputPlace;
}

function jobOf(options: ScoreOptions, { model, version, input, output }: Places): ScorePlan['job'] {
  const { types, delimiter, outputs, keep, unordered, argmax, topK, overwrite } = options;
  const { maxErrors, priority, chunkRows, parameters, webhook, idColumn, map } = options;
  return withoutUndefined({
    model,
    version,
    input: withoutUndefined({ ...inputFormat(options, input), types, ...(delimiter && { delimiter }) }),
    output: withoutUndefined({
      ...outputFormat(options, output),
      outputs,
      keep,
      unordered,
      argmax,
      top_k: topK,
      overwrite,
    }),
    map: map && Object.fromEntries(map.map(({ name, value }) => [name, value])),
    id_column: idColumn,
    parameters,
    max_errors: maxErrors,
    priority,
    chunk_rows: chunkRows,
    webhook,
  }) as ScorePlan['job'];
}

/** Told to the job where its own name for the input would not say it: what is uploaded, and standard input. */
function inputFormat({ format }: ScoreOptions, input: InputPlace): Partial<DetectedInput> {
  if (input.kind === 'images') return { format: format ?? 'images' };
  if (input.kind === 'stdin') return { format: format ?? 'jsonl' };
  const detected = detectedOf(input.kind === 'file' ? input.path : input.uri, format);
  return { ...detected, format: format ?? detected.format };
}

/** @throws CliError where the name says nothing and no format was given */
function detectedOf(name: string, format: BulkFormat | undefined): DetectedInput {
  try {
    return detectInput(name);
  } catch (error) {
    if (format === undefined) throw usageError(`--in: ${reasonOf(error)}`);
    return { format, compression: 'none' };
  }
}

function outputFormat({ outFormat }: ScoreOptions, output: OutputPlace) {
  const name = output.kind === 'file' ? output.path : output.uri;
  const { format, compression } = namedFormat(name);
  const settled = outFormat ?? BULK_OUTPUT_FORMATS.find((known) => known === format);
  if (settled !== undefined) return { format: settled, compression };
  throw usageError(
    `The ending of --out ${name} tells no format: end it in .jsonl, .csv, .parquet or .arrow (.gz and .zst behind it compress), or give --out-format.`,
  );
}

function namedFormat(name: string): { format?: BulkFormat; compression: BulkCompression } {
  try {
    return detectInput(name);
  } catch {
    return { compression: /\.gz$/i.test(name) ? 'gzip' : /\.zst$/i.test(name) ? 'zstd' : 'none' };
  }
}

/** Values that no schema lets pass are told as the API would, without asking it. */
function refuseInvalid(job: ScorePlan['job']): void {
  const parsed = BulkJobCreate.safeParse({ ...job, input: { ...job.input, uri: '/' } });
  if (parsed.success) return;
  const found = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw usageError(found.join('\n'));
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;
}
