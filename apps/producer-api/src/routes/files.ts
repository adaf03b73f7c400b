/** Files of batches, as /v1/files of the OpenAI API has them: upload, list, look, delete. Contents: file-content.ts. */
import { sightOf } from '@remuda/core/access/caller';
import { BULK_FILE_PURPOSES, BulkFile, BulkFileDeleted, BulkFilePage } from '@remuda/schemas';
import * as z from 'zod';
import { takeUpload, UploadForm } from '../bodies/file-upload.js';
import type { App, ServerDeps } from '../deps.js';
import { json, problems } from '../openapi.js';
import { integerText } from '../query.js';

const ALL = '/v1/files';
export const FileParams = z.object({ id: z.string().describe('Id of the file: file-….') });
export const PAGE_AFTER = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe('Id of the last one seen: last_id of the page before.');
const ListQuery = z.strictObject({
  limit: integerText(1, 10_000).optional().describe('Most files of one page; default 100.'),
  after: PAGE_AFTER,
  order: z.enum(['asc', 'desc']).optional().describe('By time of creation; default desc, newest first.'),
  purpose: z.enum(BULK_FILE_PURPOSES).optional(),
});
const DEFAULT_LIMIT = 100;

export const READS_FILES = { scope: 'read', openAi: true } as const;
const CHANGES_FILES = { scope: 'submit', openAi: true } as const;

export function fileRoutes(app: App, deps: ServerDeps): void {
  uploadRoute(app, deps);
  readRoutes(app, deps);
  deleteRoute(app, deps);
}

function uploadRoute(app: App, { bulk, maxFileBytes }: ServerDeps): void {
  const schema = {
    tags: ['batches'],
    summary: 'Upload a file',
    description: 'It goes to the disk as it comes, and is there whole or not at all.',
    response: { 200: json('The file.', BulkFile), ...problems(413, 415, 422, 503, 507) },
  };
  const config = { ...CHANGES_FILES, streamsBody: true, bodies: { 'multipart/form-data': UploadForm } };
  app.post(ALL, { schema, config }, async (request, reply) => {
    const { staged, facts } = await takeUpload(request, bulk.files, maxFileBytes);
    const file = await staged.keep({ ...facts, tenant: request.caller.tenant });
    return reply.header('location', `${ALL}/${file.id}`).send(file);
  });
}

function readRoutes(app: App, { bulk }: ServerDeps): void {
  const list = {
    tags: ['batches'],
    summary: 'Files, newest first',
    querystring: ListQuery,
    response: { 200: json('A page.', BulkFilePage), ...problems(404, 422, 503) },
  };
  app.get(ALL, { schema: list, config: READS_FILES }, async ({ query, caller }, reply) => {
    const page = { ...query, limit: query.limit ?? DEFAULT_LIMIT };
    return reply.send(pageOf(await bulk.files.list(page, sightOf(caller))));
  });
  const one = {
    tags: ['batches'],
    summary: 'One file',
    params: FileParams,
    response: { 200: json('What is known of it.', BulkFile), ...problems(404, 503) },
  };
  app.get(`${ALL}/:id`, { schema: one, config: READS_FILES }, async ({ params, caller }, reply) =>
    reply.send(await bulk.files.get(params.id, sightOf(caller))),
  );
}

function deleteRoute(app: App, { bulk }: ServerDeps): void {
  const schema = {
    tags: ['batches'],
    summary: 'Delete a file',
    params: FileParams,
    response: { 200: json('It is gone.', BulkFileDeleted), ...problems(404, 409, 503) },
  };
  app.delete(`${ALL}/:id`, { schema, config: CHANGES_FILES }, async ({ params, caller }, reply) => {
    await bulk.files.delete(params.id, sightOf(caller));
    return reply.send({ id: params.id, object: 'file', deleted: true });
  });
}

/** A page as clients of the OpenAI API turn it. */
export function pageOf<Entry extends { id: string }>({
  entries,
  hasMore,
}: {
  entries: Entry[];
  hasMore: boolean;
}) {
  return {
    object: 'list' as const,
    data: entries,
    first_id: entries[0]?.id ?? null,
    last_id: entries.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}
