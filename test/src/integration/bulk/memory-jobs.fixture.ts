/** The use cases of bulk jobs in memory, around a real file store: for what the routes make of calls and answers. */
import type { BulkCaller, BulkFiles, BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { NO_PROGRESS } from '@remuda/core/bulk/job-record';
import { RemudaError } from '@remuda/core/errors';
import { newBulkJobId } from '@remuda/core/ids';
import { type BulkJob, type BulkJobCreate, isBulkTerminal, type OpenAiBatchCreate } from '@remuda/schemas';

export class MemoryJobs implements BulkUseCases {
  readonly jobs = new Map<string, BulkJob & { tenant: string }>();
  /** What each call was given, in order. */
  readonly created: { wanted: BulkJobCreate | OpenAiBatchCreate; by: BulkCaller }[] = [];
  readonly files: BulkFiles;

  constructor(files: BulkFiles) {
    this.files = files;
  }

  async create(wanted: BulkJobCreate, by: BulkCaller): Promise<BulkJob> {
    return this.#add(wanted, by, { model: wanted.model, input_file_id: wanted.input.file_id ?? null });
  }

  async createOpenAi(wanted: OpenAiBatchCreate, by: BulkCaller): Promise<BulkJob> {
    return this.#add(wanted, by, { input_file_id: wanted.input_file_id, metadata: wanted.metadata ?? null });
  }

  #add(wanted: BulkJobCreate | OpenAiBatchCreate, by: BulkCaller, more: Partial<BulkJob>): BulkJob {
    this.created.push({ wanted, by });
    const id = by.jobId ?? newBulkJobId();
    const job = this.jobs.get(id) ?? { ...emptyJob(id, by.traceId), ...more, tenant: by.tenant };
    this.jobs.set(id, job);
    return shown(job);
  }

  #find(id: string, sight: string | null = null) {
    const job = this.jobs.get(id);
    if (!job || (sight !== null && job.tenant !== sight))
      throw new RemudaError('batch_not_found', `there is no batch ${id}`);
    return job;
  }

  async get(id: string, sight?: string | null): Promise<BulkJob> {
    return shown(this.#find(id, sight));
  }

  async list({ limit, after }: { limit: number; after?: string }, sight: string | null = null) {
    const all = [...this.jobs.values()].filter((job) => sight === null || job.tenant === sight).reverse();
    const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
    const entries = all.slice(from, from + limit).map(shown);
    return { entries, hasMore: all.length > from + limit };
  }

  #change(id: string, sight: string | null | undefined, change: Partial<BulkJob>): BulkJob {
    const job = this.#find(id, sight);
    if (isBulkTerminal(job.status)) throw new RemudaError('batch_state', `${id} has ended: ${job.status}`);
    return shown(Object.assign(job, change));
  }

  async pause(id: string, sight?: string | null) {
    return this.#change(id, sight, { status: 'paused' });
  }
  async resume(id: string, sight?: string | null) {
    return this.#change(id, sight, { status: 'in_progress' });
  }
  async cancel(id: string, sight?: string | null) {
    return this.#change(id, sight, { status: 'cancelled' });
  }
  async setPriority(id: string, priority: number, sight?: string | null) {
    return this.#change(id, sight, { priority });
  }
  async retryFailed(id: string, sight?: string | null): Promise<BulkJob> {
    return shown(Object.assign(this.#find(id, sight), { status: 'in_progress' }));
  }
}

function shown({ tenant: _tenant, ...job }: BulkJob & { tenant: string }): BulkJob {
  return job;
}

function emptyJob(id: string, traceId: string): BulkJob {
  const none = { in_progress_at: null, expires_at: null, finalizing_at: null, completed_at: null };
  const nor = { failed_at: null, expired_at: null, cancelling_at: null, cancelled_at: null };
  return {
    ...{ id, object: 'batch', endpoint: '/v1/inference-requests', errors: null, input_file_id: null },
    ...{ completion_window: '24h', status: 'in_progress', output_file_id: null, error_file_id: null },
    ...{ created_at: 1_800_000_000, ...none, ...nor, metadata: null, model: null, version: null },
    ...{ priority: 5, map: {}, reason: null, hint: null, trace_id: traceId },
    request_counts: { total: 0, completed: 0, failed: 0 },
    input: { uri: null, format: 'jsonl', compression: 'none' },
    output: { uri: null, errors_uri: null, format: 'jsonl', compression: 'none' },
    progress: NO_PROGRESS,
  };
}
