/** Bulk jobs and their files over HTTP: /v1/batches and /v1/files. Files go up and come down as streams. */
import {
  BulkFile,
  BulkFileDeleted,
  BulkFilePage,
  BulkJob,
  type BulkJobCreateInput,
  BulkJobPage,
  type BulkJobPatch,
} from '@remuda/schemas';
import type { ApiClient } from '../api/api-client.js';
import type { BulkAction, BulkControl } from './bulk-control.js';
import { formWithFile } from './form-with-file.js';

export interface PageChoice {
  limit?: number;
  /** Id of the last one that was seen. */
  after?: string;
}

export class ApiBulk implements BulkControl {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  create(wanted: BulkJobCreateInput, onceKey?: string): Promise<BulkJob> {
    return this.#api.ask(BulkJob, 'POST', '/v1/batches', wanted, onceKey);
  }

  get(id: string): Promise<BulkJob> {
    return this.#api.ask(BulkJob, 'GET', batchPath(id));
  }

  act(id: string, action: BulkAction): Promise<BulkJob> {
    return this.#api.ask(BulkJob, 'POST', `${batchPath(id)}:${action}`);
  }

  setPriority(id: string, priority: number): Promise<BulkJob> {
    const patch: BulkJobPatch = { priority };
    return this.#api.ask(BulkJob, 'PATCH', batchPath(id), patch);
  }

  list(page: PageChoice): Promise<BulkJobPage> {
    return this.#api.ask(BulkJobPage, 'GET', `/v1/batches${queryOf(page)}`);
  }

  files(page: PageChoice & { purpose?: string }): Promise<BulkFilePage> {
    return this.#api.ask(BulkFilePage, 'GET', `/v1/files${queryOf(page)}`);
  }

  file(id: string): Promise<BulkFile> {
    return this.#api.ask(BulkFile, 'GET', filePath(id));
  }

  deleteFile(id: string): Promise<BulkFileDeleted> {
    return this.#api.ask(BulkFileDeleted, 'DELETE', filePath(id));
  }

  /** @param keptS seconds after which it may go; without it, it is kept until it is deleted */
  upload(filename: string, content: AsyncIterable<Buffer | string>, keptS?: number): Promise<BulkFile> {
    const expiry = { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': String(keptS) };
    const fields = { purpose: 'batch', ...(keptS === undefined ? {} : expiry) };
    return this.#api.send(BulkFile, '/v1/files', formWithFile(fields, filename, content));
  }

  /** The bytes from `from` on: status 206, or 200 and all of them where the server does not know ranges. */
  content(id: string, from: number): Promise<Response> {
    return this.#api.download(`${filePath(id)}/content`, from > 0 ? { range: `bytes=${from}-` } : {});
  }
}

function batchPath(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}

function filePath(id: string): string {
  return `/v1/files/${encodeURIComponent(id)}`;
}

function queryOf(choice: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(choice)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}
