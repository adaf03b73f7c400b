/**
 * A bulk job: a file of rows in, a file of answers out. Over HTTP it is /v1/batches, and the object is that of the
 * OpenAI Batch API with more fields, so that its client libraries read it unchanged; "batch" alone means what runs at
 * once in a model everywhere else.
 *
 *   validating → in_progress ⇄ paused → finalizing → completed
 *        └────────────┴──────────┴─────────┴──▶ failed | cancelling → cancelled | expired
 */
import * as z from 'zod';
import { BulkFileId } from './bulk-file.js';
import { ItemError } from './errors.js';
import { ModelName } from './inference-request.js';
import { VersionRef } from './model-versions.js';
import { WebhookOption } from './webhook.js';

export const BULK_FORMATS = ['jsonl', 'csv', 'parquet', 'arrow', 'images', 'list'] as const;
export const BulkFormat = z
  .enum(BULK_FORMATS)
  .describe(
    'jsonl: a JSON object a line. images: a folder or glob of image files. list: a URL, path or object key of an image a line.',
  );
export type BulkFormat = z.infer<typeof BulkFormat>;

export const BULK_OUTPUT_FORMATS = ['jsonl', 'csv', 'parquet', 'arrow'] as const;
export const BulkOutputFormat = z.enum(BULK_OUTPUT_FORMATS);
export type BulkOutputFormat = z.infer<typeof BulkOutputFormat>;

export const BulkCompression = z.enum(['none', 'gzip', 'zstd']);
export type BulkCompression = z.infer<typeof BulkCompression>;

/** What a column can be told to be, where the file itself does not say. */
export const BULK_COLUMN_TYPES = [
  'bool',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'float32',
  'float64',
  'string',
  'json',
] as const;
export const BulkColumnType = z.enum(BULK_COLUMN_TYPES);
export type BulkColumnType = z.infer<typeof BulkColumnType>;

export const BulkInput = z
  .strictObject({
    file_id: BulkFileId.optional().describe('A file that was uploaded.'),
    uri: z
      .string()
      .min(1)
      .max(4_096)
      .optional()
      .describe(
        'Path (where the server allows it: REMUDA_BULK_PATHS), http(s)://…, s3://bucket/key, or a glob.',
      ),
    format: BulkFormat.optional().describe('Default: by the ending of the name.'),
    compression: BulkCompression.optional().describe('Default: by the ending of the name: .gz, .zst.'),
    delimiter: z.string().length(1).optional().describe('Of CSV; default ",".'),
    types: z
      .record(z.string(), BulkColumnType)
      .optional()
      .describe('Types of columns by name, where the file has none: CSV. Default: as the model needs them.'),
  })
  .refine(({ file_id, uri }) => (file_id === undefined) !== (uri === undefined), {
    error: 'exactly one of "file_id" and "uri"',
  });
export type BulkInput = z.infer<typeof BulkInput>;

export const BulkOutput = z.strictObject({
  uri: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('Path (REMUDA_BULK_PATHS) or s3://bucket/key. Default: a file of the server, output_file_id.'),
  errors_uri: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('Where the rows that failed are written; default beside the output: NAME.errors.jsonl.'),
  format: BulkOutputFormat.optional().describe(
    'Default: by the ending of uri, else as the input, else jsonl.',
  ),
  compression: BulkCompression.optional().describe('Default: by the ending of uri, else none.'),
  overwrite: z.boolean().default(false).describe('Take the place of a file that is there.'),
  unordered: z
    .boolean()
    .default(false)
    .describe('Rows in the order in which they were done, which saves a copy of the file at the end.'),
  outputs: z.array(z.string()).min(1).optional().describe('Outputs to write; default all.'),
  top_k: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('In place of each numeric output: its k largest elements and their places, largest first.'),
  argmax: z
    .boolean()
    .default(false)
    .describe('In place of each numeric output: the place of its largest element.'),
  keep: z.array(z.string()).default([]).describe('Columns of the input that are written beside the outputs.'),
});
export type BulkOutput = z.infer<typeof BulkOutput>;

export const MaxErrors = z
  .union([
    z.int().min(0),
    z.string().regex(/^(100|[0-9]{1,2})(\.[0-9]+)?%$/, { error: 'a number, or like "5%"' }),
  ])
  .describe(
    'Stops the job once more rows than this have failed: a number, or a share of the rows done ("1%").',
  );
export type MaxErrors = z.infer<typeof MaxErrors>;

const Labels = z
  .record(z.string().min(1).max(64), z.string().max(512))
  .refine((labels) => Object.keys(labels).length <= 16, { error: 'at most 16 pairs' })
  .describe('Your own labels; returned with the job.');

/** What POST /v1/batches takes. */
export const BulkJobCreate = z
  .strictObject({
    model: ModelName,
    version: VersionRef.optional(),
    input: BulkInput,
    output: BulkOutput.prefault({}),
    map: z
      .record(z.string().min(1).max(256), z.string().min(1).max(65_536))
      .optional()
      .describe(
        'Which columns make an input: {"x": "[f0..f29]"} or {"x": "[a, b, c]"} stacks columns, {"x": "embedding"} takes one. Default: the column of that name; or all columns that are neither kept nor the id, where the model has one input.',
      ),
    id_column: z
      .string()
      .optional()
      .describe('Column that identifies a row; default custom_id where there is one.'),
    parameters: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Parameters of the model, for all rows.'),
    max_errors: MaxErrors.optional(),
    priority: z
      .int()
      .min(0)
      .max(9)
      .default(5)
      .describe('As of a request: among bulk jobs of a tenant 0 goes first.'),
    chunk_rows: z
      .int()
      .min(1)
      .max(1_000_000)
      .optional()
      .describe('Most rows of a chunk. Default: what takes about a second, from the measured profile.'),
    webhook: WebhookOption.optional(),
    metadata: Labels.nullish(),
  })
  .meta({ id: 'BulkJobCreate' });
export type BulkJobCreate = z.infer<typeof BulkJobCreate>;
export type BulkJobCreateInput = z.input<typeof BulkJobCreate>;

/** `endpoint` of a batch of the OpenAI clients, and `url` of its lines; or the route of a model that takes a request. */
export const BATCH_ENDPOINT = '/v1/inference-requests';

/** Whether it is one of these. @param model default: of any model */
export function isBatchEndpoint(url: string, model?: string): boolean {
  if (url === BATCH_ENDPOINT) return true;
  const named = /^\/v1\/models\/([^/]+)\/requests$/.exec(url)?.[1];
  return named !== undefined && (model === undefined || named === model);
}

/** What the OpenAI client sends to POST /v1/batches. */
export const OpenAiBatchCreate = z
  .object({
    input_file_id: BulkFileId,
    endpoint: z
      .string()
      .min(1)
      .max(256)
      .describe(`${BATCH_ENDPOINT}, or /v1/models/{model}/requests; each line names its model in its body.`),
    completion_window: z.string().regex(/^[1-9][0-9]{0,3}h$/, { error: 'hours, such as "24h"' }),
    metadata: Labels.nullish(),
    output_expires_after: z
      .object({ anchor: z.literal('created_at'), seconds: z.int().min(3_600).max(2_592_000) })
      .optional(),
  })
  .meta({ id: 'OpenAiBatchCreate' });
export type OpenAiBatchCreate = z.infer<typeof OpenAiBatchCreate>;

export const BULK_TERMINAL = ['completed', 'failed', 'expired', 'cancelled'] as const;
export const BulkJobStatus = z
  .enum(['validating', 'in_progress', 'paused', 'finalizing', 'cancelling', ...BULK_TERMINAL])
  .describe('A completed job can hold rows that failed. paused: it goes on with :resume.');
export type BulkJobStatus = z.infer<typeof BulkJobStatus>;

export function isBulkTerminal(status: BulkJobStatus): boolean {
  return (BULK_TERMINAL as readonly string[]).includes(status);
}

const seconds = z.int().nullable();

export const BulkProgress = z.strictObject({
  rows_total: z.int().nullable().describe('null: not known before the file has been read.'),
  rows_done: z.int().describe('With an answer or an error.'),
  rows_failed: z.int(),
  rows_in_flight: z.int(),
  bytes_total: z.int().nullable(),
  bytes_read: z.int(),
  chunks_done: z.int(),
  chunks_in_flight: z.int(),
  rows_repeated: z
    .int()
    .describe(
      'Run again: what was under way at a crash, and the chunks of rows that failed, by retry-failed.',
    ),
  rows_per_s: z.number().nullable().describe('Over the last half minute; null: nothing is done yet.'),
  eta_s: z.number().nullable().describe('Until all rows are done, at that speed.'),
  elapsed_s: z.number().describe('Since it began, pauses left out.'),
  device_seconds: z.number().describe('Native time of all runs: what it has cost.'),
  devices: z
    .array(
      z.strictObject({
        worker_id: z.string(),
        device: z.string(),
        rows: z.int(),
        device_seconds: z.number(),
      }),
    )
    .describe('Who has done how much.'),
});
export type BulkProgress = z.infer<typeof BulkProgress>;

export const BulkJob = z
  .strictObject({
    id: z.string(),
    object: z.literal('batch'),
    endpoint: z.string(),
    errors: z
      .strictObject({
        object: z.literal('list'),
        data: z.array(
          z.strictObject({
            code: z.string(),
            message: z.string(),
            param: z.string().nullable(),
            line: z.int().nullable().describe('Line of the input file, from 1.'),
          }),
        ),
      })
      .nullable()
      .describe('Why it has failed.'),
    input_file_id: z.string().nullable(),
    completion_window: z.string(),
    status: BulkJobStatus,
    output_file_id: z.string().nullable(),
    error_file_id: z.string().nullable(),
    created_at: z.int(),
    in_progress_at: seconds,
    expires_at: seconds,
    finalizing_at: seconds,
    completed_at: seconds,
    failed_at: seconds,
    expired_at: seconds,
    cancelling_at: seconds,
    cancelled_at: seconds,
    request_counts: z.strictObject({
      total: z.int(),
      completed: z.int().describe('Rows that have an answer.'),
      failed: z.int(),
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
    model: z.string().nullable(),
    version: z
      .string()
      .nullable()
      .describe('All rows run on one version: the one that was resolved at its start.'),
    priority: z.int(),
    input: z.strictObject({
      uri: z.string().nullable(),
      format: BulkFormat,
      compression: BulkCompression,
    }),
    output: z.strictObject({
      uri: z
        .string()
        .nullable()
        .describe(
          'NAME.incomplete where the job ended before all rows were done; null: a file of the server.',
        ),
      errors_uri: z.string().nullable(),
      format: BulkOutputFormat,
      compression: BulkCompression,
    }),
    map: z.record(z.string(), z.string()).describe('Input by input: the columns that make it.'),
    progress: BulkProgress,
    reason: ItemError.nullable().describe('Why it is paused or has failed.'),
    hint: z.string().nullable().describe('What to do next: the command that goes on.'),
    trace_id: z.string(),
  })
  .meta({ id: 'BulkJob' });
export type BulkJob = z.infer<typeof BulkJob>;

export const BulkJobPage = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(BulkJob),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'BulkJobPage' });
export type BulkJobPage = z.infer<typeof BulkJobPage>;

export const BulkJobPatch = z.strictObject({ priority: z.int().min(0).max(9) }).meta({ id: 'BulkJobPatch' });
export type BulkJobPatch = z.infer<typeof BulkJobPatch>;

/** `data` of the webhook events batch.completed, batch.failed, batch.cancelled. */
export const BulkEventData = z.strictObject({ batch: BulkJob }).meta({ id: 'BulkEventData' });
export type BulkEventData = z.infer<typeof BulkEventData>;
