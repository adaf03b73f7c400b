/** /v1/batches over HTTP: which form a body has, which places it may name, calls that are made once, who sees what. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BulkJob } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issue, type TestKey } from '../access/keys.js';
import { MemoryJobs } from '../bulk/memory-jobs.fixture.js';
import { type Rig, setup } from './rig.js';

let rig: Rig;
let jobs: MemoryJobs;
let ann: TestKey;
let bob: TestKey;
let fileId: string;
const open = mkdtempSync(join(tmpdir(), 'remuda-open-'));

beforeAll(async () => {
  mkdirSync(join(open, 'sub'));
  writeFileSync(join(open, 'rows.csv'), 'x\n1\n');
  rig = await setup({
    env: { REMUDA_API_AUTH: 'keys', REMUDA_BULK_PATHS: open },
    makeBulk: (files) => {
      jobs = new MemoryJobs(files);
      return jobs;
    },
  });
  ann = await issue(rig, { tenant: 'ann', scopes: ['read', 'submit'] });
  bob = await issue(rig, { tenant: 'bob', scopes: ['read', 'submit'] });
  const body = new FormData();
  body.append('purpose', 'batch');
  body.append('file', new Blob(['{}\n']), 'rows.jsonl');
  fileId = String((await rig.call('POST', '/v1/files', { body, headers: ann.auth })).body.id);
});
afterAll(async () => {
  await rig.close();
  rmSync(open, { recursive: true });
});

const post = (body: unknown, headers: Record<string, string> = {}, path = '', key = ann) =>
  rig.post(`/v1/batches${path}`, body, { ...key.auth, ...headers });
const get = (path: string, key = ann) => rig.call('GET', `/v1/batches${path}`, { headers: key.auth });
const act = (path: string, key = ann) => rig.call('POST', `/v1/batches${path}`, { headers: key.auth });
const lastCreated = () => jobs.created.at(-1);

async function made(): Promise<string> {
  return String((await post({ model: 'rows', input: { file_id: fileId } })).body.id);
}

describe('a batch is made', () => {
  it('from our form', async () => {
    const answer = await post({
      model: 'rows',
      input: { file_id: fileId },
      output: { top_k: 3 },
      max_errors: '1%',
    });
    expect(answer).toMatchObject({
      status: 200,
      body: { object: 'batch', model: 'rows', input_file_id: fileId },
    });
    expect(answer.headers.get('location')).toBe(`/v1/batches/${answer.body.id}`);
    expect(lastCreated()).toMatchObject({
      wanted: { output: { top_k: 3, overwrite: false }, priority: 5 },
      by: { tenant: 'ann', keyId: ann.key.id, traceId: answer.body.trace_id },
    });
  });

  it('from that of the OpenAI clients', async () => {
    const body = { input_file_id: fileId, endpoint: '/v1/inference-requests', completion_window: '24h' };
    const answer = await post({ ...body, metadata: { run: '7' } });
    expect(answer).toMatchObject({ status: 200, body: { metadata: { run: '7' }, input_file_id: fileId } });
  });

  it('from paths, as they are without links and URLs', async () => {
    const input = { uri: `file://${open}/sub/../rows.csv` };
    await post({ model: 'rows', input, output: { uri: `${open}/sub/out.csv` } });
    expect(lastCreated()?.wanted).toMatchObject({
      input: { uri: expect.stringMatching(/^\/.*\/rows\.csv$/) },
      output: { uri: expect.stringMatching(/\/sub\/out\.csv$/) },
    });
  });

  const openAi = {
    input_file_id: 'file-0000000000000000',
    endpoint: '/v1/inference-requests',
    completion_window: '24h',
  };
  it.each<[string, unknown, number, string, string | null]>([
    ['no model', { input: { uri: '/x' } }, 422, 'invalid_request', 'model'],
    ['no input', { model: 'rows' }, 422, 'invalid_request', 'input'],
    [
      'two inputs',
      { model: 'rows', input: { uri: '/x', file_id: openAi.input_file_id } },
      422,
      'invalid_request',
      'input',
    ],
    [
      'an input elsewhere',
      { model: 'rows', input: { uri: '/etc/passwd' } },
      422,
      'invalid_request',
      'input.uri',
    ],
    [
      'an input inside',
      { model: 'rows', input: { uri: 'http://127.0.0.1/x.csv' } },
      422,
      'invalid_request',
      'input.uri',
    ],
    [
      'an output elsewhere',
      { model: 'rows', input: { uri: 's3://b/x' }, output: { uri: '/etc/x' } },
      422,
      'invalid_request',
      'output.uri',
    ],
    [
      'errors elsewhere',
      { model: 'rows', input: { uri: 's3://b/x' }, output: { errors_uri: '/etc/x' } },
      422,
      'invalid_request',
      'output.errors_uri',
    ],
    [
      'a file that is not there',
      { model: 'rows', input: { file_id: openAi.input_file_id } },
      404,
      'file_not_found',
      null,
    ],
    [
      'a webhook inside',
      { model: 'rows', input: { uri: 's3://b/x' }, webhook: 'http://127.0.0.1/' },
      422,
      'webhook_refused',
      'webhook',
    ],
    ['a file of OpenAI that is not there', openAi, 404, 'file_not_found', null],
    ['another endpoint', { ...openAi, endpoint: '/v1/chat/completions' }, 422, 'invalid_request', 'endpoint'],
    ['another window', { ...openAi, completion_window: 'soon' }, 422, 'invalid_request', 'completion_window'],
  ])('not from %s', async (_what, body, status, code, param) => {
    const before = jobs.created.length;
    const answer = await post(body);
    expect([answer.status, answer.body.code, answer.body.error]).toEqual([
      status,
      code,
      { code, type: 'invalid_request_error', message: answer.body.detail, param },
    ]);
    expect(jobs.created.length).toBe(before);
  });

  it('not from a file of another tenant', async () => {
    const answer = await post({ model: 'rows', input: { file_id: fileId } }, {}, '', bob);
    expect([answer.status, answer.body.code]).toEqual([404, 'file_not_found']);
  });
});

describe('a call with a key', () => {
  const body = () => ({ model: 'rows', input: { file_id: fileId } });

  it('is made once', async () => {
    const before = jobs.created.length;
    const first = await post(body(), { 'idempotency-key': '"once"' });
    const again = await post(body(), { 'idempotency-key': '"once"' });
    expect(again.body.id).toBe(first.body.id);
    expect([again.headers.get('idempotent-replayed'), jobs.created.length]).toEqual(['true', before + 1]);
    const other = await post({ ...body(), priority: 1 }, { 'idempotency-key': '"once"' });
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_mismatch']);
  });

  it('is the same job when it is made again after a crash between the job and its answer', async () => {
    // Redis goes away behind the job: no answer of the first call is kept, as when its process dies there.
    const create = jobs.create.bind(jobs);
    jobs.create = async (wanted, by) => {
      await create(wanted, by);
      throw new Error('died');
    };
    const first = await post(body(), { 'idempotency-key': '"crash"' });
    jobs.create = create;
    const died = lastCreated()?.by.jobId;
    const again = await post(body(), { 'idempotency-key': '"crash"' });
    expect([first.status, again.status, again.body.id]).toEqual([500, 200, died]);
    expect(died).toMatch(/^batch_[0-9a-z]{20}$/);
  });
});

describe('a batch is steered', () => {
  it('by a verb behind a colon, by the path of OpenAI, and by its priority', async () => {
    const id = await made();
    expect((await act(`/${id}:pause`)).body.status).toBe('paused');
    expect((await act(`/${id}:resume`)).body.status).toBe('in_progress');
    const headers = { ...ann.auth, 'content-type': 'application/json' };
    const patched = await rig.call('PATCH', `/v1/batches/${id}`, { body: '{"priority":2}', headers });
    expect(patched.body.priority).toBe(2);
    expect((await act(`/${id}:cancel`)).body.status).toBe('cancelled');
    expect((await act(`/${id}:retry-failed`)).body.status).toBe('in_progress');
    expect((await act(`/${id}/cancel`)).body.status).toBe('cancelled');
    const late = await act(`/${id}:pause`);
    expect([late.status, late.body.code, late.headers.get('x-should-retry')]).toEqual([
      409,
      'batch_state',
      'false',
    ]);
    expect((await act(`/${id}:explode`)).status).toBe(404);
  });

  it('by its tenant alone', async () => {
    const id = await made();
    const answers = await Promise.all([
      get(`/${id}`, bob),
      act(`/${id}:cancel`, bob),
      act(`/${id}/cancel`, bob),
    ]);
    expect(answers.map(({ body }) => body.code)).toEqual(Array(3).fill('batch_not_found'));
  });
});

describe('batches are read', () => {
  it('page by page', async () => {
    const ids = [await made(), await made(), await made()].reverse();
    const first = await get('?limit=2');
    expect((first.body.data as BulkJob[]).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(first.body).toMatchObject({ object: 'list', last_id: ids[1], has_more: true });
    expect(((await get(`?limit=1&after=${ids[1]}`)).body.data as BulkJob[])[0]?.id).toBe(ids[2]);
    expect((await get('', bob)).body).toMatchObject({ data: [], has_more: false });
  });

  it('when they stand still, where a call waits for that', async () => {
    const id = await made();
    const waiting = get(`/${id}?wait=60`);
    await act(`/${id}:cancel`);
    expect((await waiting).body.status).toBe('cancelled');
  });

  it('not with the scope submit alone', async () => {
    const key = await issue(rig, { tenant: 'ann', scopes: ['submit'] });
    const { status, body } = await get('', key);
    expect([status, body.error]).toEqual([403, expect.objectContaining({ type: 'permission_error' })]);
  });
});
