/** The official OpenAI client, unchanged, against a real API, worker and Redis: what its users do with files and batches. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import OpenAI, { toFile } from 'openai';
import type { Batch, BatchCreateParams } from 'openai/resources/batches';
import type { FileObject } from 'openai/resources/files';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/models/', import.meta.url));
/** Its types know the endpoints of OpenAI alone; what is sent is any text. */
const ENDPOINT = '/v1/inference-requests' as BatchCreateParams['endpoint'];
const ROWS = 40;

let folder: string;
let fleet: Fleet;
let client: OpenAI;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-openai-'));
  cpSync(join(EXAMPLES, 'celsius'), join(folder, 'celsius'), { recursive: true });
  fleet = await Fleet.start({ models: folder });
  client = new OpenAI({ baseURL: `${fleet.api.url}/v1`, apiKey: 'of-nobody' });
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function line(i: number, body: Record<string, unknown> = {}): string {
  return JSON.stringify({
    custom_id: `row-${i}`,
    method: 'POST',
    url: ENDPOINT,
    body: { model: 'celsius', inputs: { celsius: [i] }, ...body },
  });
}

async function uploaded(lines: string[], name = 'rows.jsonl'): Promise<FileObject> {
  const file = await toFile(Buffer.from(`${lines.join('\n')}\n`), name);
  return client.files.create({ file, purpose: 'batch' });
}

function create(file: FileObject, more: Partial<BatchCreateParams> = {}): Promise<Batch> {
  return client.batches.create({
    ...{ input_file_id: file.id, endpoint: ENDPOINT, completion_window: '24h' },
    ...more,
  });
}

async function ended(batch: Batch): Promise<Batch> {
  for (let now = batch; ; now = await client.batches.retrieve(batch.id)) {
    if (['completed', 'failed', 'expired', 'cancelled'].includes(now.status)) return now;
    await sleep(50);
  }
}

async function linesOf(fileId: string | null | undefined): Promise<Answer[]> {
  const text = await (await client.files.content(fileId as string)).text();
  return text
    .trimEnd()
    .split('\n')
    .map((each) => JSON.parse(each) as Answer);
}

interface Answer {
  custom_id: string;
  response: { status_code: number; body: { outputs: { fahrenheit: { data: number[] } } } } | null;
  error: { code: string; message: string } | null;
}

describe.concurrent('a batch', () => {
  it('is uploaded, made, polled and fetched: one answer for each line, in their order', async () => {
    const file = await uploaded(Array.from({ length: ROWS }, (_, i) => line(i)));
    expect(await client.files.retrieve(file.id)).toMatchObject({ filename: 'rows.jsonl', purpose: 'batch' });
    const made = await create(file, { metadata: { run: 'first' } });
    expect(made).toMatchObject({ object: 'batch', endpoint: ENDPOINT, input_file_id: file.id });
    const batch = await ended(made);
    expect(batch).toMatchObject({
      status: 'completed',
      metadata: { run: 'first' },
      request_counts: { total: ROWS, completed: ROWS, failed: 0 },
    });
    expect(batch.error_file_id ?? null).toBeNull();
    const answers = await linesOf(batch.output_file_id);
    const ids = Array.from({ length: ROWS }, (_, i) => `row-${i}`);
    expect(answers.map(({ custom_id }) => custom_id)).toEqual(ids);
    const degrees = answers.map(({ response }) => response?.body.outputs.fahrenheit.data[0] as number);
    expect([degrees[0], degrees[10]]).toEqual([expect.closeTo(32), expect.closeTo(50)]);
    expect((await client.files.retrieve(batch.output_file_id as string)).purpose).toBe('batch_output');
  });

  it('with a faulty line completes, and tells of it in the errors file', async () => {
    const file = await uploaded([line(0), line(1, { inputs: { celsius: ['warm'] } }), line(2)]);
    const batch = await ended(await create(file));
    expect(batch).toMatchObject({
      status: 'completed',
      request_counts: { total: 3, completed: 2, failed: 1 },
    });
    const errors = await linesOf(batch.error_file_id);
    expect(errors.map(({ custom_id }) => custom_id)).toEqual(['row-1']);
  });

  it('of a file that is none of lines fails, and says why', async () => {
    const batch = await ended(await create(await uploaded(['this is', 'no JSON'])));
    expect(batch.status).toBe('failed');
    const [error] = batch.errors?.data ?? [];
    expect(error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
  });

  it('that is made twice under one key is one', async () => {
    const file = await uploaded([line(7)]);
    const headers = { 'Idempotency-Key': '"nightly"' };
    const body = { input_file_id: file.id, endpoint: ENDPOINT, completion_window: '24h' as const };
    const first = await client.batches.create(body, { headers });
    expect((await client.batches.create(body, { headers })).id).toBe(first.id);
    await ended(first);
  });

  it('keeps its input while it goes on, can be cancelled, and stands in the list', async () => {
    const batch = await create(await uploaded(Array.from({ length: 20_000 }, (_, i) => line(i))));
    const deleted = client.files.delete(batch.input_file_id);
    await expect(deleted).rejects.toMatchObject({ status: 409, code: 'batch_state' });
    await client.batches.cancel(batch.id);
    expect((await ended(batch)).status).toBe('cancelled');
    const listed: string[] = [];
    for await (const each of client.batches.list({ limit: 2 })) listed.push(each.id);
    expect(listed).toContain(batch.id);
    expect(new Set(listed).size).toBe(listed.length);
    await client.files.delete(batch.input_file_id);
  });
});

describe('a file', () => {
  it('is listed and deleted, also while the list is walked', async () => {
    const made = [await uploaded([line(1)], 'a.jsonl'), await uploaded([line(2)], 'b.jsonl')];
    const seen: string[] = [];
    for await (const file of client.files.list({ limit: 1 })) {
      if (!made.some(({ id }) => id === file.id)) continue;
      seen.push(file.filename);
      expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true });
    }
    expect(seen).toEqual(['b.jsonl', 'a.jsonl']);
  });
});

describe('an error', () => {
  it('comes with its words and its code, and is not tried again in vain', async () => {
    const gone = { id: 'file-0000000000000000' } as FileObject;
    const errors = await Promise.all([
      create(gone).catch((error: unknown) => error),
      client.files.content(gone.id).catch((error: unknown) => error),
      client.batches.retrieve('batch_none').catch((error: unknown) => error),
      client.files
        .create({ file: await toFile(Buffer.from('x'), 'x'), purpose: 'assistants' })
        .catch((error: unknown) => error),
    ]);
    expect(errors[0]).toBeInstanceOf(OpenAI.NotFoundError);
    expect(errors).toMatchObject([
      { status: 404, code: 'file_not_found', type: 'invalid_request_error' },
      { status: 404, code: 'file_not_found' },
      { status: 404, code: 'batch_not_found' },
      { status: 422, code: 'invalid_request', param: 'purpose' },
    ]);
    expect((errors[0] as Error).message).toMatch(/^404 there is no file file-0000000000000000/);
  });
});
