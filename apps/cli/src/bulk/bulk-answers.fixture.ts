/** Bulk jobs and what goes with them, whole and valid, for tests to vary. */
import { NO_PROGRESS } from '@remuda/core/bulk/job-record';
import type { BulkJob, BulkProgress, ModelDetail } from '@remuda/schemas';

export const progress: BulkProgress = { ...NO_PROGRESS, rows_total: 200_000, bytes_total: 1_000_000 };

export type JobChange = Partial<Omit<BulkJob, 'progress'>> & { progress?: Partial<BulkProgress> };

export function jobWith({ progress: change, ...rest }: JobChange = {}): BulkJob {
  return {
    id: 'batch_1',
    object: 'batch',
    endpoint: '/v1/inference-requests',
    errors: null,
    input_file_id: null,
    completion_window: '24h',
    status: 'in_progress',
    output_file_id: null,
    error_file_id: null,
    created_at: 1_800_000_000,
    in_progress_at: 1_800_000_001,
    expires_at: null,
    finalizing_at: null,
    completed_at: null,
    failed_at: null,
    expired_at: null,
    cancelling_at: null,
    cancelled_at: null,
    request_counts: { total: 0, completed: 0, failed: 0 },
    metadata: null,
    model: 'add',
    version: '1',
    priority: 5,
    input: { uri: null, format: 'jsonl', compression: 'none' },
    output: { uri: null, errors_uri: null, format: 'jsonl', compression: 'none' },
    map: {},
    reason: null,
    hint: null,
    trace_id: 't',
    ...rest,
    progress: { ...progress, ...change },
  };
}

export const OUTPUT = 'file-output000000000001';
export const ERRORS = 'file-errors000000000001';

/** Done, and its output is a file of the server. */
export function completed(change: JobChange['progress'] = {}): BulkJob {
  return jobWith({
    status: 'completed',
    output_file_id: OUTPUT,
    error_file_id: change.rows_failed ? ERRORS : null,
    completed_at: 1_800_000_020,
    progress: { rows_total: 4, rows_done: 4, elapsed_s: 2, device_seconds: 1.5, ...change },
  });
}

export const modelDetail: ModelDetail = {
  name: 'add',
  description: '',
  labels: {},
  versions: ['1'],
  default_version: '1',
  aliases: {},
  states: { ready: 1 },
  workers: 1,
  queues: [],
  problems: [],
  config: null,
  signature: {
    model: 'add',
    version: '1',
    digest: 'd',
    harness: 'h',
    inputs: [{ name: 'photo', datatype: 'BYTES', shape: ['N'], batch_axis: 0, kind: 'image' }],
    outputs: [],
    batchable: true,
    max_batch_size: 1,
    padding: [],
    parameters_schema: null,
    streams: false,
    affinity: ['cpu'],
  },
};
