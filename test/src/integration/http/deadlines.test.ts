/** Deadlines at the edge: points in time that are past, requests that cannot be expected to meet theirs. */
import type { LoadedModel } from '@remuda/schemas';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { heartbeat } from '../../support/heartbeats.js';
import { expectNothingStored, json } from './bad-cases.js';
import { type Rig, setup } from './rig.js';

const PAST = '2020-01-01T00:00:00Z';
const FUTURE = '2999-01-01T00:00:00+02:00';
const inputs = { x: [1, 2, 3] };
const ROWS = '/v1/models/rows/requests';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

describe('a point in time that is past', () => {
  it.each(['start_by', 'finish_by'])('%s is refused with its path, and nothing is stored', async (name) => {
    const { status, body } = await rig.post(ROWS, { inputs, metadata: { [name]: PAST } });
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'invalid_request' });
    expect(body.errors).toEqual([
      {
        path: `metadata.${name}`,
        expected: expect.stringMatching(/^a point in time to come: it is \d{4}-.*Z here$/),
        received: PAST,
      },
    ]);
    await expectNothingStored(rig);
  });

  it('both are told of, and in a batch with their place, beside what is accepted', async () => {
    const metadata = { start_by: PAST, finish_by: PAST };
    const requests = [
      { model: 'rows', inputs },
      { model: 'rows', inputs, metadata },
    ];
    const { body } = await rig.post('/v1/requests:batch', { requests });
    expect(body).toMatchObject({ accepted: 1, refused: 1 });
    const [, refused] = body.results as { problem: { errors: { path: string }[] } }[];
    expect(refused?.problem.errors.map(({ path }) => path)).toEqual([
      'requests[1].metadata.start_by',
      'requests[1].metadata.finish_by',
    ]);
  });

  it('is refused in the query of an image, where the others are taken, too', async () => {
    const image = { body: Buffer.from('image'), headers: { 'content-type': 'image/png' } };
    const send = (query: string) => rig.call('POST', `/v1/models/picture/requests?${query}`, image);
    expect((await send(`finish_by=${PAST}`)).body.errors?.[0]?.path).toBe('metadata.finish_by');
    const query = `start_by=${encodeURIComponent(FUTURE)}&finish_timeout_ms=90000&timeout_ms=60000`;
    const { status, body } = await send(query);
    expect(status).toBe(202);
    expect(body.metadata).toMatchObject({ start_by: FUTURE, finish_timeout_ms: 90_000, timeout_ms: 60_000 });
    const left = (at: unknown): number => Date.parse(at as string) - Date.parse(body.created_at as string);
    expect([left(body.deadline_at), left(body.finish_deadline_at)]).toEqual([60_000, 90_000]);
  });

  it('does not keep a caller who repeats an accepted request from hearing of it', async () => {
    const start_by = new Date(Date.now() + 400).toISOString();
    const request = { request_id: 'repeated', inputs, metadata: { start_by } };
    expect((await rig.post(ROWS, request)).status).toBe(202);
    await expect.poll(() => Date.now() > Date.parse(start_by)).toBe(true);
    const { status, body } = await rig.post(ROWS, request);
    expect(status).toBeLessThan(300);
    expect(body).toMatchObject({ request_id: 'repeated', deadline_at: start_by });
  });

  it.each([
    ['no point in time', { start_by: 'soon' }, 'metadata.start_by'],
    ['one without a zone', { finish_by: '2999-01-01T00:00:00' }, 'metadata.finish_by'],
    ['a time-out of nothing', { finish_timeout_ms: 0 }, 'metadata.finish_timeout_ms'],
    ['a time-out of more than a day', { finish_timeout_ms: 86_400_001 }, 'metadata.finish_timeout_ms'],
  ])('%s is refused', async (_, metadata, path) => {
    const { status, body } = await rig.call('POST', ROWS, json({ inputs, metadata }));
    expect({ status, code: body.code, path: body.errors?.[0]?.path }).toEqual({
      status: 422,
      code: 'invalid_request',
      path,
    });
  });
});

describe('a request that cannot be expected to meet its deadline', () => {
  let busy: Rig;
  /** A worker that has 1,000 rows in hand and does ten a second; one run takes half a second. */
  async function withBusyWorker(env: Record<string, string> = {}): Promise<Rig> {
    busy = await setup({ env });
    const { redis, keys } = busy;
    const measured = { seconds_per_row: 0.1, run_seconds: 0.5, last_used_at: new Date().toISOString() };
    const models = [{ model: 'rows', ...measured, backlog_rows: 1_000 }];
    await redis.set(keys.worker('w1'), JSON.stringify(heartbeat(models)), 'PX', 600_000);
    await redis.zadd(keys.workers(), Date.now(), 'w1');
    await expect
      .poll(async () => (await busy.call('GET', '/v1/fleet')).body.workers, { timeout: 60_000 })
      .toHaveLength(1);
    return busy;
  }
  afterEach(() => busy.close());

  it('is refused with the prediction, and when it would be reachable; nothing is stored', async () => {
    await withBusyWorker();
    const { status, headers, body } = await busy.post(ROWS, { inputs, metadata: { timeout_ms: 10_000 } });
    expect({ status, code: body.code, retryable: body.retryable }).toEqual({
      status: 429,
      code: 'deadline_unreachable',
      retryable: true,
    });
    expect(body.details).toEqual({
      predicted_start_ms: 100_000,
      predicted_finish_ms: 100_500,
      allowed_ms: 10_000,
      rows_ahead: 1_000,
      retry_after_s: 90,
    });
    expect(headers.get('retry-after')).toBe('90');
    await expectNothingStored(busy);
  });

  it('is refused by itself in a batch', async () => {
    await withBusyWorker();
    const hurried = { model: 'rows', inputs, metadata: { finish_timeout_ms: 1_000 } };
    const { body } = await busy.post('/v1/requests:batch', {
      requests: [{ model: 'rows', inputs }, hurried],
    });
    expect(body.results).toMatchObject([
      { status: 202 },
      { status: 429, problem: { code: 'deadline_unreachable', details: { allowed_ms: 1_000 } } },
    ]);
  });

  it('is accepted within the margin, with a notice, and without one where there is time', async () => {
    await withBusyWorker();
    const notices = async (metadata: object) => (await busy.post(ROWS, { inputs, metadata })).body.notices;
    expect(await notices({ timeout_ms: 90_000 })).toEqual([
      expect.stringMatching(
        /^it is expected to begin in 100000 ms, after its deadline of 90000 ms: 1000 rows/,
      ),
    ]);
    expect(await notices({ timeout_ms: 300_000, finish_timeout_ms: 600_000 })).toEqual([]);
  });

  it('is accepted where the setting says so', async () => {
    await withBusyWorker({ REMUDA_API_REFUSE_HOPELESS: 'false' });
    const { status, body } = await busy.post(ROWS, { inputs, metadata: { timeout_ms: 10 } });
    expect(status).toBe(202);
    expect(body.notices).toEqual([expect.stringContaining('it is expected to begin in')]);
  });

  it('is not refused for what waits behind it', async () => {
    await withBusyWorker();
    const { redis, keys } = busy;
    const idle = { seconds_per_row: 0.1, run_seconds: 0.5, last_used_at: new Date().toISOString() };
    await redis.set(
      keys.worker('w1'),
      JSON.stringify(heartbeat([{ model: 'rows', ...idle }])),
      'PX',
      600_000,
    );
    const inHand = async () => {
      const [worker] = (await busy.call('GET', '/v1/fleet')).body.workers as { models: LoadedModel[] }[];
      return worker?.models[0]?.backlog_rows;
    };
    await expect.poll(inHand, { timeout: 60_000 }).toBe(0);
    const low = { model: 'rows', inputs, metadata: { priority: 9 } };
    const requests = Array.from({ length: 200 }, () => low);
    await busy.post('/v1/requests:batch', { requests });
    const submit = (priority: number) =>
      busy.post(ROWS, { inputs, metadata: { priority, timeout_ms: 5_000 } }).then(({ status }) => status);
    await expect.poll(() => submit(9), { timeout: 60_000, interval: 200 }).toBe(429);
    expect(await submit(1)).toBe(202);
  });
});
