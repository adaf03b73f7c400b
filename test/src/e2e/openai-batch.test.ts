/**
 * The official OpenAI client, unchanged, against a real API, worker and Redis: what its users do with files and batches;
 * and beside it our own form of a batch, over HTTP.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type BulkJob, type BulkJobCreateInput, isBulkTerminal, type Problem } from '@remuda/schemas';
import OpenAI, { toFile } from 'openai';
import type { Batch, BatchCreateParams } from 'openai/resources/batches';
import type { FileObject } from 'openai/resources/files';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';

const EXAMPLES = fileURLToPath(new URL('../../examples/models/', import.meta.url));
/** Its types know the endpoints of OpenAI alone; what is sent is any text. */
const ENDPOINT = '/v1/inference-requests' as BatchCreateParams['endpoint'];
const ROWS = 40;
/** The line that is none of the model's. */
const FAULTY = 30;

let folder: string;
/** Whose files may be named by path. */
let open: string;
let fleet: Fleet;
let client: OpenAI;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-openai-'));
  cpSync(join(EXAMPLES, 'celsius'), join(folder, 'celsius'), { recursive: true });
  open = mkdtempSync(join(tmpdir(), 'remuda-open-'));
  fleet = await Fleet.start({
    models: folder,
    env: { REMUDA_BULK_PATHS: open, REMUDA_WORKER_BULK_JOBS: '8' },
  });
  client = new OpenAI({ baseURL: `${fleet.api.url}/v1`, apiKey: 'of-nobody' });
});
afterAll(async () => {
  await fleet?.stop();
  for (const each of [folder, open]) rmSync(each, { recursive: true, force: true });
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
  it('is uploaded, made once, polled and fetched: one answer for each line, in their order', async () => {
    const lines = Array.from({ length: ROWS }, (_, i) =>
      line(i, i === FAULTY ? { inputs: { celsius: ['warm'] } } : {}),
    );
    const file = await uploaded(lines);
    expect(await client.files.retrieve(file.id)).toMatchObject({ filename: 'rows.jsonl', purpose: 'batch' });
    const body = { input_file_id: file.id, endpoint: ENDPOINT, completion_window: '24h' as const };
    const headers = { 'Idempotency-Key': '"nightly"' };
    const made = await client.batches.create({ ...body, metadata: { run: '1' } }, { headers });
    expect(made).toMatchObject({ object: 'batch', endpoint: ENDPOINT, input_file_id: file.id });
    const again = await client.batches.create({ ...body, metadata: { run: '1' } }, { headers });
    expect(again.id).toBe(made.id);
    const batch = await ended(made);
    expect(batch).toMatchObject({
      status: 'completed',
      metadata: { run: '1' },
      request_counts: { total: ROWS, completed: ROWS - 1, failed: 1 },
    });
    const answers = await linesOf(batch.output_file_id);
    const ids = Array.from({ length: ROWS }, (_, i) => `row-${i}`).filter((_, i) => i !== FAULTY);
    expect(answers.map(({ custom_id }) => custom_id)).toEqual(ids);
    const degrees = answers.map(({ response }) => response?.body.outputs.fahrenheit.data[0] as number);
    expect([degrees[0], degrees[10]]).toEqual([expect.closeTo(32), expect.closeTo(50)]);
    const errors = await linesOf(batch.error_file_id);
    expect(errors.map(({ custom_id }) => custom_id)).toEqual([`row-${FAULTY}`]);
    expect((await client.files.retrieve(batch.output_file_id as string)).purpose).toBe('batch_output');
  });

  it('of a file that is none of lines fails, and says why', async () => {
    const batch = await ended(await create(await uploaded(['this is', 'no JSON'])));
    expect(batch.status).toBe('failed');
    const [error] = batch.errors?.data ?? [];
    expect(error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
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

describe.concurrent('a batch of our form', () => {
  const CSV = 'id,celsius\na,20\nb,warm\nc,100\n';
  const wanted = (input: BulkJobCreateInput['input'], uri?: string): BulkJobCreateInput => ({
    ...{ model: 'celsius', input, id_column: 'id' },
    output: { format: 'jsonl', ...(uri ? { uri } : {}) },
  });

  async function scored(job: BulkJobCreateInput): Promise<BulkJob> {
    const { status, body } = await fleet.api.post<BulkJob>('/v1/batches', job);
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    for (;;) {
      const now = (await fleet.api.get<BulkJob>(`/v1/batches/${body.id}?wait=60`)).body;
      if (isBulkTerminal(now.status)) return now;
    }
  }

  function expectScored(text: string): void {
    const rows = text
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each) as Record<string, unknown>);
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatchObject({ custom_id: 'a', fahrenheit: expect.anything() });
    expect(rows[1]).toMatchObject({ custom_id: 'b', error: expect.anything() });
    expect(rows[2]).toMatchObject({ custom_id: 'c', fahrenheit: expect.anything() });
  }

  it('reads an uploaded file and gives one of the server', async () => {
    const file = await toFile(Buffer.from(CSV), 'rows.csv');
    const { id } = await client.files.create({ file, purpose: 'batch' });
    const job = await scored(wanted({ file_id: id }));
    expect(job).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
    expectScored(await (await client.files.content(job.output_file_id as string)).text());
  });

  it('names an uploaded file that cannot be read by its id, not by where the server keeps it', async () => {
    const empty = await client.files.create({
      file: await toFile(Buffer.from('\n'), 'empty.csv'),
      purpose: 'batch',
    });
    const job = await scored({ model: 'celsius', input: { file_id: empty.id } });
    expect(job).toMatchObject({ status: 'failed', reason: { code: 'invalid_file' } });
    expect(job.reason?.message).toMatch(new RegExp(`^${empty.id}`));
    expect(JSON.stringify(job)).not.toContain(`/${empty.id}`);
  });

  it('reads and writes by path where that is opened', async () => {
    const [from, to] = [join(open, 'rows.csv'), join(open, 'scored.jsonl')];
    writeFileSync(from, CSV);
    const job = await scored(wanted({ uri: from }, to));
    expect(job).toMatchObject({ status: 'completed', output: { uri: to } });
    expectScored(readFileSync(to, 'utf8'));
    const again = await fleet.api.post<Problem>('/v1/batches', wanted({ uri: from }, to));
    expect([again.status, again.body.code]).toEqual([409, 'output_exists']);
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
