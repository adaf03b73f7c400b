/** /v1/files over HTTP: uploads of any form, what is refused and leaves nothing, and every way to read a content. */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { BulkFile } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issue, type TestKey } from '../access/keys.js';
import { type Answer, type Rig, setup } from './rig.js';

const MOST = 300_000;
let rig: Rig;
let ann: TestKey;
let bob: TestKey;

beforeAll(async () => {
  rig = await setup({ env: { REMUDA_API_AUTH: 'keys', REMUDA_API_MAX_FILE_BYTES: String(MOST) } });
  ann = await issue(rig, { tenant: 'ann', scopes: ['read', 'submit'] });
  bob = await issue(rig, { tenant: 'bob', scopes: ['read'] });
});
afterAll(() => rig.close());

type Part = [name: string, value: string | Blob, filename?: string];
const FILE: Part = ['file', new Blob(['0123456789']), 'rows.jsonl'];
const PURPOSE: Part = ['purpose', 'batch'];

function upload(parts: Part[], key: TestKey = ann): Promise<Answer> {
  const body = new FormData();
  for (const [name, value, filename] of parts) {
    if (filename === undefined) body.append(name, value);
    else body.append(name, value as Blob, filename);
  }
  return rig.call('POST', '/v1/files', { body, headers: key.auth });
}

async function uploaded(parts: Part[] = [PURPOSE, FILE]): Promise<BulkFile> {
  const { status, body } = await upload(parts);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as unknown as BulkFile;
}

const ask = (path: string, headers: Record<string, string> = {}, key: TestKey = ann, method = 'GET') =>
  rig.call(method, `/v1/files${path}`, { headers: { ...key.auth, ...headers } });
const incoming = () => readdir(join(rig.files, 'incoming')).catch(() => []);

describe('an upload', () => {
  it('is a file, wherever it stands in the form', async () => {
    for (const parts of [
      [PURPOSE, FILE],
      [FILE, PURPOSE],
    ]) {
      const file = await uploaded(parts);
      expect(file).toMatchObject({ object: 'file', bytes: 10, filename: 'rows.jsonl', purpose: 'batch' });
      expect((await ask(`/${file.id}`)).body).toEqual(file);
    }
  });

  it('can say when it is to go', async () => {
    const file = await uploaded([
      ['expires_after[anchor]', 'created_at'],
      ['expires_after[seconds]', '3600'],
      FILE,
      PURPOSE,
    ]);
    expect((file.expires_at as number) - file.created_at).toBeGreaterThanOrEqual(3_600);
  });

  it.each<[string, Part[], number, string, string?]>([
    ['without a file', [PURPOSE], 422, 'invalid_request', 'file'],
    ['without a purpose', [FILE], 422, 'invalid_request', 'purpose'],
    ['of another purpose', [['purpose', 'assistants'], FILE], 422, 'invalid_request', 'purpose'],
    ['with another field', [['color', 'red'], FILE], 422, 'invalid_request', 'color'],
    [
      'with half of a time',
      [['expires_after[seconds]', '3600'], FILE, PURPOSE],
      422,
      'invalid_request',
      'expires_after',
    ],
    [
      'with a time too short',
      [['expires_after[seconds]', '60'], FILE],
      422,
      'invalid_request',
      'expires_after[seconds]',
    ],
    [
      'of a file under another name',
      [['data', new Blob(['x']), 'x'], PURPOSE],
      422,
      'invalid_request',
      'data',
    ],
    ['of two files', [PURPOSE, FILE, FILE], 413, 'payload_too_large'],
    [
      'that is too large',
      [PURPOSE, ['file', new Blob([new Uint8Array(MOST + 1)]), 'x']],
      413,
      'payload_too_large',
    ],
  ])('%s is refused and leaves nothing', async (_what, parts, status, code, param) => {
    const before = await rig.redis.zcard(rig.keys.bulkFiles(null));
    const { body, ...answer } = await upload(parts);
    expect([answer.status, body.code]).toEqual([status, code]);
    expect(body.error).toMatchObject({ code, message: body.detail, param: param ?? null });
    expect(await incoming()).toEqual([]);
    expect(await rig.redis.zcard(rig.keys.bulkFiles(null))).toBe(before);
  });

  it('that is no form is told what is', async () => {
    const headers = { ...ann.auth, 'content-type': 'application/json' };
    const { status, body } = await rig.call('POST', '/v1/files', { body: '{}', headers });
    expect([status, body.detail]).toEqual([415, expect.stringContaining('multipart/form-data')]);
  });

  it('whose size is told beforehand is refused before it is sent', async () => {
    const { hostname, port } = new URL(rig.url);
    const socket = connect(Number(port), hostname);
    socket.write(`${head(ann, 10 * MOST)}\r\n`);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  it('that is cut off leaves nothing', async () => {
    const { hostname, port } = new URL(rig.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `${head(ann, 100_000)}\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\nhalf`,
    );
    await expect.poll(incoming).toHaveLength(1);
    socket.destroy();
    await expect.poll(incoming).toEqual([]);
  });

  it('needs the scope submit', async () => {
    expect(await upload([PURPOSE, FILE], bob)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });
});

function head(key: TestKey, length: number): string {
  const fields = [`host: x`, `authorization: ${key.auth.authorization}`, `content-length: ${length}`];
  return ['POST /v1/files HTTP/1.1', ...fields, 'content-type: multipart/form-data; boundary=b', ''].join(
    '\r\n',
  );
}

describe('a content', () => {
  let file: BulkFile;
  beforeAll(async () => {
    file = await uploaded([PURPOSE, ['file', new Blob(['0123456789']), 'Größe (1).CSV']]);
  });
  const content = (headers = {}, method = 'GET') => ask(`/${file.id}/content`, headers, ann, method);

  it('comes whole, with what it is, as a download that no browser runs', async () => {
    const { status, headers, bytes } = await content();
    expect([status, bytes.toString()]).toEqual([200, '0123456789']);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-length': '10',
      'content-disposition': "attachment; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%281%29.CSV",
      etag: `"${file.id}"`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    });
  });

  it('comes in part, or says that there is no such part', async () => {
    const part = await content({ range: 'bytes=2-4' });
    expect([part.status, part.bytes.toString(), part.headers.get('content-range')]).toEqual([
      206,
      '234',
      'bytes 2-4/10',
    ]);
    const none = await content({ range: 'bytes=10-' });
    expect([none.status, none.headers.get('content-range')]).toEqual([416, 'bytes */10']);
    expect(none.body.code).toBe('invalid_request');
  });

  it('is not sent to who has it', async () => {
    const { status, bytes } = await content({ 'if-none-match': `"${file.id}"` });
    expect([status, bytes.length]).toEqual([304, 0]);
  });

  it('can be asked for its size alone', async () => {
    const { status, headers, bytes } = await content({}, 'HEAD');
    expect([status, headers.get('content-length'), bytes.length]).toEqual([200, '10', 0]);
  });

  it('of nothing is nothing', async () => {
    const empty = await uploaded([PURPOSE, ['file', new Blob([]), 'x']]);
    const { status, bytes, headers } = await ask(`/${empty.id}/content`);
    expect([status, bytes.length, headers.get('content-type')]).toEqual([200, 0, 'application/octet-stream']);
  });
});

it('the list turns its pages as OpenAI clients do, and is narrowed by tenant and purpose', async () => {
  const { body } = await ask('?limit=2');
  const data = body.data as BulkFile[];
  expect(body).toMatchObject({ object: 'list', first_id: data[0]?.id, last_id: data[1]?.id, has_more: true });
  const next = await ask(`?limit=1&after=${body.last_id}`);
  expect((next.body.data as BulkFile[])[0]?.id).not.toBe(body.last_id);
  expect((await ask('?purpose=batch_output')).body).toMatchObject({
    data: [],
    first_id: null,
    has_more: false,
  });
  expect((await ask('', {}, bob)).body.data).toEqual([]);
  expect(await ask('?limit=0')).toMatchObject({ status: 422 });
});

it('a deleted file is gone, and one of another tenant was never there', async () => {
  const { id } = await uploaded();
  for (const path of [`/${id}`, `/${id}/content`]) expect((await ask(path, {}, bob)).status).toBe(404);
  expect((await ask(`/${id}`, {}, ann, 'DELETE')).body).toEqual({ id, object: 'file', deleted: true });
  const { status, headers, body } = await ask(`/${id}/content`);
  expect([status, body.code, headers.get('x-should-retry')]).toEqual([404, 'file_not_found', 'false']);
  expect(body.error).toMatchObject({
    type: 'invalid_request_error',
    code: 'file_not_found',
    message: body.detail,
  });
});
