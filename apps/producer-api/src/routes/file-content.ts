/**
 * GET and HEAD /v1/files/{id}/content: the bytes of a file as they are, or a part of them. A content never changes, so
 * its id is its ETag. It is read as fast as it is taken.
 */
import { sightOf } from '@remuda/core/access/caller';
import type { BulkFile } from '@remuda/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { type ByteRange, hasIt, wantedRange } from '../byte-range.js';
import type { App, ServerDeps } from '../deps.js';
import { binary, nothing, problems } from '../openapi.js';
import { FileParams, READS_FILES } from './files.js';

const URL = '/v1/files/:id/content';
const BYTES = {
  description: 'Its bytes.',
  content: { 'application/octet-stream': { schema: binary('As they are.') } },
};
const PART = { ...BYTES, description: 'Those that Range asks for.' };
const HEADERS = z.object({
  range: z.string().optional().describe('One range of bytes, such as "bytes=1000-".'),
  'if-none-match': z.string().optional().describe('ETags that the caller has.'),
});

/** By the ending of its name. None that a browser would run. */
const TYPES: Readonly<Record<string, string>> = {
  jsonl: 'application/x-ndjson',
  json: 'application/json',
  csv: 'text/csv; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
  arrow: 'application/vnd.apache.arrow.file',
  gz: 'application/gzip',
  zst: 'application/zstd',
};

export function fileContentRoutes(app: App, { bulk }: ServerDeps): void {
  const schema = {
    tags: ['batches'],
    summary: 'The content of a file',
    params: FileParams,
    response: {
      200: BYTES,
      206: PART,
      304: nothing('The caller has it.'),
      ...problems(404, 416, 503),
    },
  };
  const config = { ...READS_FILES, headers: HEADERS };
  // HEAD is a route of its own: the one that comes by itself would read the whole file to throw it away.
  app.get(URL, { schema, config, exposeHeadRoute: false }, async (request, reply) => {
    const sight = sightOf(request.caller);
    const file = await bulk.files.get(request.params.id, sight);
    if (hasIt(request.headers, etagOf(file))) return reply.headers(freshness(file)).code(304).send();
    const range = describe(file, request, reply);
    const { content } = await bulk.files.read(file.id, range, sight);
    return reply.send(content);
  });
  app.head(URL, { schema: { hide: true }, config }, async (request, reply) => {
    const file = await bulk.files.get((request.params as { id: string }).id, sightOf(request.caller));
    if (hasIt(request.headers, etagOf(file))) return reply.headers(freshness(file)).code(304).send();
    describe(file, request, reply);
    return reply.send();
  });
}

const etagOf = ({ id }: BulkFile): string => `"${id}"`;

function freshness(file: BulkFile): Record<string, string> {
  return { etag: etagOf(file), 'cache-control': 'private, no-cache' };
}

/** Sets what the answer says of its bytes, and returns which ones it has. @throws RangeError416 */
function describe(file: BulkFile, { headers }: FastifyRequest, reply: FastifyReply): ByteRange | undefined {
  const range = wantedRange(headers, file.bytes, etagOf(file));
  const { from, to } = range ?? { from: 0, to: file.bytes };
  const ending = file.filename.split('.').at(-1)?.toLowerCase() ?? '';
  reply.headers({
    ...freshness(file),
    'accept-ranges': 'bytes',
    'content-type': Object.hasOwn(TYPES, ending) ? (TYPES[ending] as string) : 'application/octet-stream',
    'content-length': String(to - from),
    'content-disposition': `attachment; filename*=UTF-8''${encoded(file.filename)}`,
    'last-modified': new Date(file.created_at * 1_000).toUTCString(),
  });
  if (range) reply.code(206).header('content-range', `bytes ${from}-${to - 1}/${file.bytes}`);
  return range;
}

/** As RFC 8187 wants it: encodeURIComponent leaves four signs that are none of its own. */
function encoded(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
