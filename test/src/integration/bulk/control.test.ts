/** Bulk jobs from their creation to their files: what their owner asks of them, and what ends or pauses them. */
import { existsSync, statSync, utimesSync } from 'node:fs';
import { BAD } from '@remuda/core/bulk/coordinator/redis-door.fixture';
import { newBulkState, type StoredBulkJob } from '@remuda/core/bulk/job-record';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BulkRig } from './rig.js';

let rig: BulkRig;
beforeAll(() => {
  rig = new BulkRig();
  rig.here();
});
afterAll(() => rig?.close());

const count = (rows: number): number[] => Array.from({ length: rows }, (_, i) => i);

function ys(name: string): (number | string)[] {
  return rig
    .text(name)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { y?: number; error?: { code: string } })
    .map(({ y, error }) => error?.code ?? (y as number));
}

it('a file is scored whole and in order, and leaves neither chunks nor work folder behind', async () => {
  const { id } = await rig.create(rig.rows('a.jsonl', count(50)), 'a.out.jsonl', { output: { keep: ['x'] } });
  const job = await rig.status(id, 'completed');
  expect(ys('a.out.jsonl')).toEqual(count(50).map((x) => 2 * x));
  expect(JSON.parse(rig.text('a.out.jsonl').split('\n')[3] as string)).toMatchObject({
    row: 3,
    custom_id: 'r3',
    x: 3,
    y: 6,
  });
  expect(job).toMatchObject({ version: '1', request_counts: { total: 50, completed: 50, failed: 0 } });
  expect(job.progress).toMatchObject({ rows_done: 50, rows_total: 50, rows_in_flight: 0, rows_repeated: 0 });
  expect(await rig.chunks()).toEqual([]);
  await expect.poll(() => existsSync(rig.file('.a.out.jsonl.remuda'))).toBe(false);
  expect(existsSync(rig.file('a.out.errors.jsonl'))).toBe(false);
});

it('the row that kills its runner is the only one to fail', async () => {
  const xs = count(20).map((x) => (x === 10 ? BAD.crash : x));
  const { id } = await rig.create(rig.rows('c.jsonl', xs), 'c.out.jsonl');
  const job = await rig.status(id, 'completed');
  // Its chunk of 8, then 4, then 2 of them.
  expect(job.progress.rows_repeated).toBe(14);
  expect(ys('c.out.jsonl')).toEqual(xs.map((x) => (x === BAD.crash ? 'runner_crashed' : 2 * x)));
  expect(JSON.parse(rig.text('c.out.errors.jsonl'))).toMatchObject({
    ...{ row: 10, custom_id: 'r10', code: 'runner_crashed', input: { id: 'r10', x: BAD.crash } },
  });
});

it('rows that a worker began again are counted as repeated', async () => {
  await rig.steer('again', true);
  const { id } = await rig.create(rig.rows('again.jsonl', count(20)), 'again.out.jsonl');
  const job = await rig.status(id, 'completed');
  await rig.steer('again', false);
  expect(job.progress).toMatchObject({ rows_done: 20, rows_repeated: 20 });
});

it('the file of errors cannot take the place of the input or of the output', async () => {
  const input = rig.rows('own.jsonl', count(8));
  for (const place of [input, rig.file('own.out.jsonl')])
    await expect(rig.create(input, 'own.out.jsonl', { output: { errors_uri: place } })).rejects.toMatchObject(
      {
        code: 'invalid_request',
        message: expect.stringContaining('name another file'),
      },
    );
  expect(rig.text('own.jsonl').split('\n')).toHaveLength(9);
});

it('answers of other files of the model than at its beginning are not taken', async () => {
  await rig.steer('other', true);
  const { id } = await rig.create(rig.rows('v.jsonl', count(20)), 'v.out.jsonl');
  const job = await rig.status(id, 'paused');
  expect(job.reason).toMatchObject({
    code: 'version_not_found',
    message: expect.stringContaining('other files'),
  });
  expect(job.progress.rows_done).toBe(0);
  await rig.steer('other', false);
  await rig.bulk.resume(id);
  await rig.status(id, 'completed');
  expect(ys('v.out.jsonl')).toEqual(count(20).map((x) => 2 * x));
});

it('what a worker cannot read goes by payload', async () => {
  await rig.steer('unreadable', true);
  const { id } = await rig.create(rig.rows('p.jsonl', count(30)), 'p.out.jsonl');
  await rig.status(id, 'completed');
  await rig.steer('unreadable', false);
  expect(ys('p.out.jsonl')).toEqual(count(30).map((x) => 2 * x));
});

it('paused it rests until it is resumed; a priority can be changed meanwhile', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('r.jsonl', count(60)), 'r.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.bulk.pause(id);
  await rig.status(id, 'paused');
  await rig.steer('hold', false);
  const rests = await rig.until(id, ({ progress }) => progress.chunks_in_flight === 0);
  expect(rests).toMatchObject({
    status: 'paused',
    hint: `remuda batches resume ${id}`,
    progress: { rows_done: 16 },
  });
  expect((await rig.bulk.setPriority(id, 1)).priority).toBe(1);
  await expect.poll(() => rig.living.has(id)).toBe(false);
  await expect(rig.bulk.retryFailed(id)).rejects.toThrow('it has not ended');
  await rig.bulk.resume(id);
  await rig.status(id, 'completed');
  expect(ys('r.out.jsonl')).toEqual(count(60).map((x) => 2 * x));
});

it('cancelled it gives what is done, under a name that says that it is not whole', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('x.jsonl', count(60)), 'x.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.bulk.pause(id);
  await rig.steer('hold', false);
  await rig.until(id, ({ status, progress }) => status === 'paused' && progress.chunks_in_flight === 0);
  expect((await rig.bulk.cancel(id)).status).toBe('cancelling');
  const job = await rig.status(id, 'cancelled');
  expect(job.cancelled_at).not.toBeNull();
  expect(job.output.uri).toMatch(/x\.out\.jsonl\.incomplete$/);
  expect(ys('x.out.jsonl.incomplete')).toEqual(count(16).map((x) => 2 * x));
  expect(rig.has('x.out.jsonl')).toBe(false);
  await expect(rig.bulk.resume(id)).rejects.toMatchObject({ code: 'batch_state' });
});

it('cancelled while much is under way it ends all of it', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('y.jsonl', count(60)), 'y.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.bulk.cancel(id);
  await rig.status(id, 'cancelled');
  await rig.steer('hold', false);
  expect(await rig.chunks()).toEqual([]);
  expect(rig.text('y.out.jsonl.incomplete')).toBe('');
});

it('too many errors end it; resumed it goes on, and what has failed can be run anew', async () => {
  const bad = count(80).map((x) => (x % 10 === 5 ? BAD.row : x));
  const input = rig.rows('e.jsonl', bad);
  const { id } = await rig.create(input, 'e.out.jsonl', { max_errors: 2, chunk_rows: 4 });
  const failed = await rig.status(id, 'failed');
  expect(failed.reason?.code).toBe('too_many_errors');
  expect(failed.reason?.message).toContain('row 5: invalid_row: x is bad');
  expect(failed.hint).toBe(`remuda batches resume ${id}`);
  expect(ys('e.out.jsonl.incomplete').length).toBe(failed.progress.rows_done);
  expect(rig.has('e.out.jsonl')).toBe(false);
  for (let tries = 0; tries < 5; tries++) {
    const { status } = await rig.bulk.get(id);
    if (status === 'completed') break;
    await rig.bulk.resume(id);
    await rig.status(id, 'failed', 'completed');
  }
  expect(ys('e.out.jsonl')).toEqual(bad.map((x) => (x === BAD.row ? 'invalid_row' : 2 * x)));
  expect(rig.has('e.out.jsonl.incomplete')).toBe(false);
  const again = await rig.bulk.retryFailed(id);
  expect(again.status).toBe('in_progress');
  await rig.status(id, 'failed', 'completed');
  expect(ys('e.out.jsonl')).toEqual(bad.map((x) => (x === BAD.row ? 'invalid_row' : 2 * x)));
});

it('a model that goes halfway pauses it, and nothing is lost', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('g.jsonl', count(60)), 'g.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.steer('gone', true);
  await rig.steer('hold', false);
  const job = await rig.status(id, 'paused');
  expect(job).toMatchObject({ reason: { code: 'model_not_found' }, hint: `remuda batches resume ${id}` });
  await rig.steer('gone', false);
  await expect.poll(() => rig.living.has(id)).toBe(false);
  await rig.bulk.resume(id);
  await rig.status(id, 'completed');
  expect(ys('g.out.jsonl')).toEqual(count(60).map((x) => 2 * x));
});

it('an input that changes under it ends it, saying from which row on', async () => {
  await rig.steer('hold', true);
  const input = rig.rows('h.jsonl', count(60));
  const { id } = await rig.create(input, 'h.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.bulk.pause(id);
  await rig.steer('hold', false);
  await rig.until(id, ({ status, progress }) => status === 'paused' && progress.chunks_in_flight === 0);
  const { mtimeMs } = statSync(input);
  utimesSync(input, mtimeMs / 1000 + 60, mtimeMs / 1000 + 60);
  await expect.poll(() => rig.living.has(id)).toBe(false);
  await rig.bulk.resume(id);
  const job = await rig.status(id, 'failed');
  expect(job.reason).toMatchObject({ code: 'invalid_file' });
  expect(job.reason?.message).toContain('has changed since the job began');
});

it('an id that stands twice is told before a row runs, with both rows', async () => {
  const input = rig.file('d.jsonl', '{"id":"a","x":1}\n{"id":"b","x":1}\n{"id":"a","x":2}\n');
  const { id } = await rig.create(input, 'd.out.jsonl');
  const job = await rig.status(id, 'failed');
  expect(job.errors?.data).toEqual([
    { code: 'duplicate_custom_id', message: 'row 2 has the id of row 0', param: 'id', line: 3 },
  ]);
  expect(job.progress.rows_done).toBe(0);
  expect(existsSync(rig.file('d.out.jsonl'))).toBe(false);
});

it('an output that exists is left alone unless it is to be overwritten', async () => {
  const input = rig.rows('o.jsonl', count(8));
  rig.file('o.out.jsonl', 'mine');
  await expect(rig.create(input, 'o.out.jsonl')).rejects.toMatchObject({ code: 'output_exists' });
  expect(rig.text('o.out.jsonl')).toBe('mine');
  const { id } = await rig.create(input, 'o.out.jsonl', { output: { overwrite: true } });
  await rig.status(id, 'completed');
  expect(ys('o.out.jsonl')).toEqual(count(8).map((x) => 2 * x));
});

it('what has failed and fails no more takes its place in the output', async () => {
  const { id } = await rig.create(rig.rows('w.jsonl', [0, 1, BAD.row, 3, 4, 5, 6, 7, 8, 9]), 'w.out.jsonl', {
    chunk_rows: 4,
    webhook: 'http://127.0.0.1:9/hook',
  });
  await rig.status(id, 'completed');
  expect(ys('w.out.jsonl')).toEqual([0, 2, 'invalid_row', 6, 8, 10, 12, 14, 16, 18]);
  await rig.steer('mended', true);
  await rig.bulk.retryFailed(id);
  const job = await rig.until(id, ({ request_counts }) => request_counts.failed === 0);
  await rig.status(id, 'completed');
  await rig.steer('mended', false);
  expect(job.request_counts.total).toBe(10);
  expect(ys('w.out.jsonl')).toEqual([0, 2, 2 * BAD.row, 6, 8, 10, 12, 14, 16, 18]);
  await expect.poll(() => existsSync(rig.file('.w.out.jsonl.remuda'))).toBe(false);
  expect(existsSync(rig.file('w.out.errors.jsonl'))).toBe(false);
  // Each end is an event of its own.
  const told = await rig.redis.smembers(rig.keys.webhooksOf(id));
  expect(told).toHaveLength(2);
});

it('a life that closes the job that it has ended does not undo what was asked of it just before', async () => {
  const { id } = await rig.create(rig.rows('n.jsonl', [0, BAD.row]), 'n.out.jsonl');
  await rig.status(id, 'completed');
  await expect.poll(() => rig.store.isOpen(id)).toBe(false);
  const job = (await rig.store.read(id)) as StoredBulkJob;
  const spec = { ...job.spec, id: `${id}n` };
  await rig.store.create(spec, job.state, 5);
  const ending = (await rig.store.take(spec.id, 0)) as number;
  await rig.unheard.retryFailed(spec.id);
  expect(await rig.store.write(spec.id, ending, job.state, Date.now())).toBe(false);
  expect(await rig.store.read(spec.id)).toMatchObject({ state: { status: 'in_progress', round: 1 } });
  await rig.store.remove(spec.id);
});

it('a life that is over can write nothing into Redis', async () => {
  const { id } = await rig.create(rig.rows('l.jsonl', count(8)), 'l.out.jsonl');
  await rig.status(id, 'completed');
  const job = await rig.store.read(id);
  if (!job) throw new Error('it is gone');
  const old = job.epoch;
  const next = (await rig.store.take(id, 0)) as number;
  expect(next).toBe(old + 1);
  expect(await rig.store.write(id, old, { ...job.state, status: 'failed' })).toBe(false);
  expect((await rig.bulk.get(id)).status).toBe('completed');
  expect(await rig.store.take(id, 70)).toBe(71);
});

/** Of 60 rows 16 are done, and nobody has it. */
async function pausedHalfway(name: string): Promise<{ id: string; input: string }> {
  await rig.steer('hold', true);
  const input = rig.rows(`${name}.jsonl`, count(60));
  const { id } = await rig.create(input, `${name}.out.jsonl`);
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.bulk.pause(id);
  await rig.steer('hold', false);
  await rig.until(id, ({ status, progress }) => status === 'paused' && progress.rows_done === 16);
  await expect.poll(() => rig.living.has(id)).toBe(false);
  return { id, input };
}

it('a job that Redis has lost goes on where it was when it is created anew', async () => {
  const { id, input } = await pausedHalfway('z');
  await rig.store.remove(id);
  await expect(rig.bulk.get(id)).rejects.toMatchObject({ code: 'batch_not_found' });
  await rig.redis.del(`${rig.prefix}:door:sent`);
  const anew = await rig.create(input, 'z.out.jsonl');
  const job = await rig.status(anew.id, 'completed');
  expect(job.progress.rows_done).toBe(60);
  expect(ys('z.out.jsonl')).toEqual(count(60).map((x) => 2 * x));
  const sent = Object.keys(await rig.redis.hgetall(`${rig.prefix}:door:sent`)).map(Number);
  expect(Math.min(...sent)).toBe(16);
});

it('a file without a row is scored: its output has none', async () => {
  const { id } = await rig.create(rig.rows('none.jsonl', []), 'none.out.jsonl');
  const job = await rig.status(id, 'completed', 'failed');
  expect(job).toMatchObject({ status: 'completed', request_counts: { total: 0, completed: 0, failed: 0 } });
  expect(rig.text('none.out.jsonl')).toBe('');
});

it('a work folder that cannot be made ends it, naming the path', async () => {
  const input = rig.rows('shut.jsonl', count(8));
  rig.file('.shut.out.jsonl.remuda', 'not a folder');
  const { id } = await rig.create(input, 'shut.out.jsonl');
  const job = await rig.status(id, 'failed');
  expect(job.reason?.message).toMatch(/\.shut\.out\.jsonl\.remuda cannot be written: .*check the folder/);
  expect(rig.has('shut.out.jsonl')).toBe(false);
});

it('a job that is created anew and wants other answers begins anew', async () => {
  const { id, input } = await pausedHalfway('other');
  await rig.store.remove(id);
  const anew = await rig.create(input, 'other.out.jsonl', { output: { format: 'csv' } });
  const job = await rig.status(anew.id, 'completed');
  expect(job.progress.rows_done).toBe(60);
  const lines = rig.text('other.out.jsonl').trimEnd().split('\n');
  expect(lines[0]).toMatch(/^row,custom_id,/);
  expect(lines).toHaveLength(61);
  const sent = Object.keys(await rig.redis.hgetall(`${rig.prefix}:door:sent`)).map(Number);
  expect(Math.min(...sent)).toBe(0);
});

it('a batch of the OpenAI form that is not done in its window gives what is done, and names the rest', async () => {
  const lines = count(40).map((i) => {
    const body = { model: 'doubler', inputs: { x: { datatype: 'FP64', shape: [1], data: [i] } } };
    return `${JSON.stringify({ custom_id: `r${i}`, method: 'POST', url: '/v1/inference-requests', body })}\n`;
  });
  const { Readable } = await import('node:stream');
  const content = Readable.from([Buffer.from(lines.join(''))]);
  const facts = { filename: 'in.jsonl', purpose: 'batch' as const, tenant: 'default', keptS: null };
  const file = await rig.bulk.files.create(content, facts);
  await rig.steer('hold', true);
  const caller = { tenant: 'default', keyId: null, traceId: '0'.repeat(31).concat('1') };
  const wanted = { input_file_id: file.id, endpoint: '/v1/inference-requests', completion_window: '1h' };
  const { id } = await rig.bulk.createOpenAi(wanted, caller);
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  rig.hoursLater(2);
  const job = await rig.status(id, 'expired');
  rig.hoursLater(0);
  await rig.steer('hold', false);
  expect(job.expired_at).not.toBeNull();
  const { content: bytes } = await rig.bulk.files.read(job.error_file_id as string);
  const text = Buffer.concat(await bytes.toArray()).toString();
  const errors = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(errors.map(({ custom_id }) => custom_id)).toEqual(count(40).map((i) => `r${i}`));
  expect(new Set(errors.map(({ error }) => error.code))).toEqual(new Set(['batch_expired']));
});

it('what has failed of a batch that was done in its window can be run anew when that has passed', async () => {
  const { id: first } = await rig.create(rig.rows('late.jsonl', [0, BAD.row, 2]), 'late.out.jsonl');
  await rig.status(first, 'completed');
  const { spec } = (await rig.store.read(first)) as StoredBulkJob;
  const id = `${first}w`;
  const output = {
    ...spec.output,
    uri: rig.file('window.out.jsonl'),
    errorsUri: rig.file('window.err.jsonl'),
  };
  const expiresAt = Date.now() + 3_600_000;
  await rig.store.create({ ...spec, id, output, expiresAt, work: rig.file('window') }, newBulkState(), 5);
  await rig.queue.add(id);
  await rig.status(id, 'completed');
  rig.hoursLater(2);
  await rig.steer('mended', true);
  await rig.bulk.retryFailed(id);
  const job = await rig.until(id, ({ status }) => ['completed', 'expired'].includes(status));
  rig.hoursLater(0);
  await rig.steer('mended', false);
  expect(job).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3, failed: 0 } });
  expect(ys('window.out.jsonl')).toEqual([0, 2 * BAD.row, 4]);
});
