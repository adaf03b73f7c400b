/** A bulk job as people see it: the object of /v1/batches, and of the webhooks about it. */
import { type BulkJob, type BulkJobStatus, isBulkTerminal } from '@remuda/schemas';
import type { BulkTimes, StoredBulkJob } from './job-record.js';

export function presentBulkJob(job: StoredBulkJob): BulkJob {
  const { spec, state } = job;
  const { progress } = state;
  const at = (name: keyof BulkTimes): number | null => seconds(state.times[name]);
  const status = shownStatus(job);
  const total = progress.rows_total ?? progress.rows_done + progress.rows_in_flight;
  return {
    id: spec.id,
    object: 'batch',
    endpoint: spec.endpoint,
    errors: state.faults.length > 0 ? { object: 'list', data: state.faults } : null,
    input_file_id: spec.input.fileId,
    completion_window: spec.completionWindow,
    status,
    output_file_id: state.outputFileId,
    error_file_id: state.errorFileId,
    created_at: seconds(spec.createdAt) as number,
    in_progress_at: at('in_progress'),
    expires_at: seconds(spec.expiresAt),
    finalizing_at: at('finalizing'),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: at('cancelling') ?? (job.wanted === 'cancel' ? seconds(job.wantedAt) : null),
    cancelled_at: at('cancelled'),
    request_counts: {
      total,
      completed: progress.rows_done - progress.rows_failed,
      failed: progress.rows_failed,
    },
    metadata: spec.metadata,
    model: state.model ?? spec.model,
    version: state.version,
    priority: job.priority,
    input: {
      uri: spec.input.uri,
      format: spec.input.format,
      compression: spec.input.compression,
    },
    output: {
      uri: state.outputUri ?? spec.output.uri,
      errors_uri: state.errorsUri,
      format: spec.output.format,
      compression: spec.output.compression,
    },
    map: state.map,
    progress,
    reason: state.reason,
    hint: hintOf(job, status),
    trace_id: spec.traceId,
  };
}

/** What was asked of it is shown before its coordinator has got to it. */
function shownStatus({ wanted, state }: StoredBulkJob): BulkJobStatus {
  if (wanted === 'cancel' && !isBulkTerminal(state.status)) return 'cancelling';
  return state.status;
}

/** The command that goes on. */
function hintOf({ spec, state }: StoredBulkJob, status: BulkJobStatus): string | null {
  const { id } = spec;
  if (status === 'paused') return `remuda batches resume ${id}`;
  if (status === 'failed' && canResume({ spec, state })) return `remuda batches resume ${id}`;
  if (isBulkTerminal(status) && state.progress.rows_failed > 0) return `remuda batches retry-failed ${id}`;
  return null;
}

/** Whether it failed for a reason that can pass, or that its owner may not mind. An uploaded file never changes. */
export function canResume({ spec, state }: Pick<StoredBulkJob, 'spec' | 'state'>): boolean {
  const code = state.reason?.code;
  if (code === undefined) return false;
  return RESUMABLE.has(code) || (spec.input.fileId === null && OF_THE_INPUT.has(code));
}

const OF_THE_INPUT = new Set(['file_not_found', 'invalid_file']);

const RESUMABLE = new Set([
  'too_many_errors',
  'disk_full',
  'internal',
  'model_not_loaded',
  'model_not_found',
  'version_not_found',
  'model_load_failed',
  'signature_unavailable',
  'source_unavailable',
  'source_unreadable',
  'output_exists',
]);

function seconds(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.floor(ms / 1000);
}
