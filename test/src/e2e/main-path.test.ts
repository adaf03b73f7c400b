/** The whole way of a request through the real processes: API, queue, batch, native ONNX, result. */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LifeEvent, type LoggedEvent, wayOf } from '@remuda/core/observability/events';
import {
  type CancelAnswer,
  DATATYPES,
  type InferenceResult,
  type ItemResult,
  isTerminal,
  type RequestRecord,
  type RequestStatus,
} from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { testModels } from '../support/test-models.js';

/** For what is sure to come, however busy the machine is. */
const PATIENCE_S = 60;

let models: string;
let fleet: Fleet;
let gate: Gate;

beforeAll(async () => {
  models = await testModels();
  gate = new Gate(models);
  fleet = await Fleet.start({ models });
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(models, { recursive: true, force: true });
});

const row = (...data: number[]) => ({ datatype: 'FP32', shape: [1, data.length], data });
const rows = (count: number) => ({
  datatype: 'FP32',
  shape: [count, 4],
  data: Array.from({ length: count * 4 }, (_, i) => i),
});

/**
 * The model `gated` runs a batch that does not end, and has the next one ready behind it: what else is asked of it
 * meanwhile is not begun. Their widths keep the two apart, and apart from what comes.
 */
async function whileAllIsBusy(during: () => Promise<void>): Promise<void> {
  const busy: string[] = [];
  await gate.closedWhile(async () => {
    for (const width of [2, 3]) {
      const { body } = await fleet.api.submit('gated', { inputs: { x: row(...Array(width).fill(1)) } });
      await waitForStatus(body.request_id, 'running');
      busy.push(body.request_id);
    }
    await during();
  });
  for (const id of busy) await waitForStatus(id, 'succeeded');
}

/** @throws Error when the request ends in another way, or nothing happens for very long */
async function waitForStatus(id: string, status: RequestStatus): Promise<RequestRecord> {
  const until = Date.now() + PATIENCE_S * 1_000;
  for (;;) {
    const record = await fleet.api.record(id);
    if (record.status === status) return record;
    if (isTerminal(record.status) || Date.now() > until)
      throw new Error(`${id} did not become ${status}: it is ${record.status}`);
    await sleep(20);
  }
}

/** The way of a trace in the log, once it holds these events: processes write their lines when they have a moment. */
async function waitForEvents(traceId: string, events: LifeEvent[]): Promise<LoggedEvent[]> {
  const way = () => wayOf(traceId, fleet.logLines());
  await expect.poll(() => way().map((line) => line.event)).toEqual(expect.arrayContaining(events));
  return way();
}

describe('a request', () => {
  const VALUES: Record<(typeof DATATYPES)[number], unknown[]> = {
    BOOL: [true, false],
    UINT8: [0, 255],
    UINT16: [0, 65_535],
    UINT32: [0, 4_294_967_295],
    UINT64: [1, '18446744073709551615'],
    INT8: [-128, 127],
    INT16: [-32_768, 32_767],
    INT32: [-2_147_483_648, 2_147_483_647],
    INT64: [-1, '-9223372036854775808'],
    FP16: [0.5, -65_504],
    FP32: [1.5, 'NaN'],
    FP64: [1e300, '-Infinity'],
    BYTES: ['', 'früh'],
  };
  for (const datatype of DATATYPES) {
    it(`of ${datatype} comes back as it was sent`, async () => {
      const x = { datatype, shape: [1, 2], data: VALUES[datatype] };
      const result = await fleet.api.run(`identity-${datatype.toLowerCase()}`, { inputs: { x } });
      expect(result.outputs?.y).toEqual(x);
    });
  }

  it('with more rows than a batch is cut, run and put together again in order', async () => {
    const x = rows(101);
    const { outputs, metrics } = await fleet.api.run('identity-fp32', { inputs: { x } });
    expect(outputs?.y).toEqual(x);
    expect(metrics?.batch_rows).toBe(32);
  });

  it('whose batch axis is not the first is batched along it', async () => {
    const x = (from: number) => ({
      datatype: 'FP32',
      shape: [2, 1, 3],
      data: Array.from({ length: 6 }, (_, i) => from + i),
    });
    const results = await Promise.all(
      [0, 10, 20, 30, 40].map((from) => fleet.api.run('batch-axis-1', { inputs: { x: x(from) } })),
    );
    results.forEach((result, i) => {
      expect(result.outputs?.y).toEqual(x(10 * i));
    });
  });

  it('shares a batch only with requests whose shared inputs are equal', async () => {
    const scaled = (factor: number) =>
      fleet.api.run('scale', {
        inputs: { x: row(1, 2, 3, 4), factor: { datatype: 'FP32', shape: [], data: factor } },
      });
    const results = await Promise.all([2, 3, 2, 3, 2, 3].map(scaled));
    expect(results.map((result) => result.outputs?.y?.data)).toEqual(
      [2, 3, 2, 3, 2, 3].map((factor) => [1, 2, 3, 4].map((value) => value * factor)),
    );
  });

  it('shares a batch with all that came while the model was busy', async () => {
    const ids: string[] = [];
    await whileAllIsBusy(async () => {
      for (let i = 0; i < 8; i++) {
        const { body } = await fleet.api.submit('gated', { inputs: { x: row(i) } });
        ids.push(body.request_id);
        await waitForEvents(body.trace_id, ['picked_up']);
      }
    });
    const results = await Promise.all(
      ids.map(async (id) => (await waitForStatus(id, 'succeeded')) && fleet.api.result(id)),
    );
    expect(results.map(({ outputs }) => outputs?.y?.data)).toEqual(ids.map((_, i) => [i]));
    expect(new Set(results.map(({ metrics }) => metrics?.batch_id)).size).toBe(1);
  });

  it('of a variable length is padded to its bucket and comes back at its true length', async () => {
    const lengths = [1, 3, 8, 9, 5, 16];
    const results = await Promise.all(
      lengths.map((length) =>
        fleet.api.run('variable-length', {
          inputs: { x: { datatype: 'FP32', shape: [1, length], data: Array(length).fill(length) } },
        }),
      ),
    );
    results.forEach((result, i) => {
      const length = lengths[i] as number;
      expect(result.outputs?.y).toEqual({
        datatype: 'FP32',
        shape: [1, length],
        data: Array(length).fill(2 * length),
      });
    });
  });

  it('to a model without a batch axis runs alone', async () => {
    const results = await Promise.all(
      [1, 2, 3].map((value) => fleet.api.run('fixed-batch', { inputs: { x: row(value, 0, 0, 0) } })),
    );
    expect(results.map((result) => result.metrics?.batch_rows)).toEqual([1, 1, 1]);
  });

  it('to a model whose output does not have its rows fails, naming the output', async () => {
    const result = await fleet.api.run('mean-over-batch', { inputs: { x: rows(3) } });
    expect(result.error).toMatchObject({ code: 'output_mismatch' });
    expect(result.error?.message).toMatch(/y.*1.*3|y.*3.*1/);
  });

  it('sent twice under one id is one request', async () => {
    const request = { request_id: 'twice', inputs: { x: row(1, 2, 3, 4) } };
    const first = await fleet.api.run('identity-fp32', request);
    const again = await fleet.api.run('identity-fp32', request);
    expect(again).toEqual(first);
    const other = await fleet.api.submit('identity-fp32', { ...request, inputs: { x: row(9, 9, 9, 9) } });
    expect(other).toMatchObject({ status: 409, body: { code: 'request_id_conflict' } });
  });

  it('whose deadline passes before it can run ends as expired, saying so', async () => {
    await whileAllIsBusy(async () => {
      const late = await fleet.api.submit('gated', {
        inputs: { x: row(1) },
        metadata: { timeout_ms: 50 },
      });
      const record = await waitForStatus(late.body.request_id, 'expired');
      expect(record.started_at).toBeNull();
      expect((await fleet.api.result(late.body.request_id)).error?.code).toBe('deadline_exceeded');
    });
  });

  it('names the time at which it is removed, in every answer', async () => {
    const { body } = await fleet.api.submit('identity-fp32', {
      inputs: { x: row(1, 2, 3, 4) },
      metadata: { result_ttl_s: 600 },
    });
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeGreaterThanOrEqual(600_000);
    const record = await waitForStatus(body.request_id, 'succeeded');
    expect(Date.parse(record.expires_at) - Date.parse(record.finished_at as string)).toBe(600_000);
  });

  it('is gone at that time, and not before', async () => {
    const sent = Date.now();
    const { body } = await fleet.api.submit('identity-fp32', {
      inputs: { x: row(1, 2, 3, 4) },
      metadata: { result_ttl_s: 1 },
    });
    const status = async () => (await fleet.api.get(`/v1/requests/${body.request_id}`)).status;
    await expect.poll(status).toBe(404);
    expect(Date.now() - sent).toBeGreaterThanOrEqual(1_000);
  });
});

describe('items of one request', () => {
  it('have outcomes of their own: the bad one never hides the good ones', async () => {
    const items = [1, 666, 3].map((value) => ({ id: `v${value}`, inputs: { x: row(value, 0, 0, 0) } }));
    const result = await fleet.api.run('fail-on-mark', { items });
    expect(result.status).toBe('partial');
    const seen = result.items?.map((item: ItemResult) => [item.id, item.status, item.error?.code ?? null]);
    expect(seen).toEqual([
      ['v1', 'succeeded', null],
      ['v666', 'failed', 'inference_failed'],
      ['v3', 'succeeded', null],
    ]);
    expect(result.items?.[2]?.outputs?.y?.data).toEqual([3, 0, 0, 0]);
  });

  it('of different shapes each find their batch', async () => {
    const items = [2, 3, 2, 3].map((width) => ({ inputs: { x: row(...Array(width).fill(width)) } }));
    const result = await fleet.api.run('identity-fp32', { items });
    expect(result.items?.map((item) => item.outputs?.y?.shape)).toEqual([
      [1, 2],
      [1, 3],
      [1, 2],
      [1, 3],
    ]);
  });

  it('may be a thousand', async () => {
    const items = Array.from({ length: 1_000 }, (_, i) => ({ inputs: { x: row(i, 0, 0, 0) } }));
    const result = await fleet.api.run('identity-fp32', { items });
    expect(result.status).toBe('succeeded');
    const first = result.items?.map((item) => (item.outputs?.y?.data as number[] | undefined)?.[0]);
    expect(first).toEqual(items.map((_, i) => i));
  });
});

describe('a cancel', () => {
  it('of a running request throws its answer away and says so; afterwards it is terminal', async () => {
    const request = { inputs: { x: row(1) } };
    await gate.closedWhile(async () => {
      const { body } = await fleet.api.submit('gated', request);
      await waitForStatus(body.request_id, 'running');
      const cancel = await fleet.api.call<CancelAnswer>('DELETE', `/v1/requests/${body.request_id}`);
      expect(cancel.body).toMatchObject({ outcome: 'ran_but_suppressed', status: 'cancelled' });
      gate.open();
      // The model runs one batch after the other, so the cancelled run is over when this one has its answer.
      await fleet.api.run('gated', request);
      expect((await fleet.api.record(body.request_id)).status).toBe('cancelled');
      const again = await fleet.api.call('DELETE', `/v1/requests/${body.request_id}`);
      expect(again).toMatchObject({ status: 409, body: { code: 'request_terminal' } });
    });
  });

  it('of a request that a worker holds but has not run keeps it from the model', async () => {
    let id = '';
    await whileAllIsBusy(async () => {
      const held = await fleet.api.submit('gated', { inputs: { x: row(1) } });
      id = held.body.request_id;
      await waitForEvents(held.body.trace_id, ['picked_up']);
      const cancel = await fleet.api.call<CancelAnswer>('DELETE', `/v1/requests/${id}`);
      expect(cancel.body.outcome).toBe('stopped_before_run');
    });
    // Would have shared a batch with it, or come after it.
    await fleet.api.run('gated', { inputs: { x: row(1) } });
    expect(await fleet.api.record(id)).toMatchObject({ status: 'cancelled', started_at: null });
  });
});

describe('what can be seen', () => {
  it('from one trace_id the log alone tells the whole way, with the other members of the batch', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const headers = { prefer: 'wait=60', traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    const together = Promise.all(
      [1, 2, 3].map((value) => fleet.api.run('identity-fp32', { inputs: { x: row(value, value) } })),
    );
    const traced = await fleet.api.post<InferenceResult>(
      '/v1/models/identity-fp32/requests',
      { inputs: { x: row(7, 7) } },
      headers,
    );
    await together;
    expect(traced.body.trace_id).toBe(traceId);
    const whole: LifeEvent[] = [
      'accepted',
      'batched',
      'delivered',
      'enqueued',
      'picked_up',
      'routed',
      'run',
      'written',
    ];
    const way = await waitForEvents(traceId, whole);
    expect(way.map((line) => line.event).sort()).toEqual(whole);
    const batched = way.find((line) => line.event === 'batched');
    expect(batched?.request_ids).toContain(traced.body.request_id);
  });

  it('metrics of the worker count requests by outcome, rows and batches', async () => {
    const [worker] = fleet.workers;
    await fleet.api.run('identity-fp32', { inputs: { x: row(1, 2, 3, 4) } });
    const metrics = async () => (await fetch(`${worker?.url}/metrics`)).text();
    // The answer is out before the worker has counted it.
    await expect
      .poll(metrics)
      .toMatch(/remuda_requests_total\{model="identity-fp32",lane="interactive",outcome="succeeded"\} \d+/);
    const text = await metrics();
    expect(text).toMatch(
      /remuda_batch_rows_count\{model="identity-fp32",version="1",device_class="cpu"\} \d+/,
    );
    expect(text).toMatch(/remuda_queue_wait_seconds_count\{model="identity-fp32"/);
  });

  it('models that could not be loaded say which file and why, and hinder no other', async () => {
    const { workers } = await fleet.api.fleet();
    const failed = Object.fromEntries(
      (workers[0]?.models ?? [])
        .filter((model) => model.state === 'failed')
        .map((model) => [model.model, model.reason]),
    );
    expect(Object.keys(failed).sort()).toEqual(['corrupt', 'future-opset', 'missing-file']);
    expect(failed.corrupt).toMatch(/model\.onnx.*not a valid ONNX file/);
    expect(failed['future-opset']).toMatch(/opset 99/);
    expect(failed['missing-file']).toMatch(/model\.onnx.*missing/);
  });
});

it('a request that waits for its worker is run when one comes', async () => {
  const lonely = await Fleet.start({ models, workers: 0 });
  try {
    const { body } = await lonely.api.submit('identity-fp32', { inputs: { x: row(1, 2, 3, 4) } });
    expect(body.status).toBe('queued');
    expect(body.notices.join()).toMatch(/no live worker/);
    await lonely.addWorker({ REMUDA_WORKER_MODELS: 'identity-fp32' });
    expect((await lonely.api.record(body.request_id, PATIENCE_S)).status).toBe('succeeded');
  } finally {
    await lonely.stop();
  }
});

it('the log holds no line that is not JSON', () => {
  const lines = fleet.logLines();
  expect(lines.length).toBeGreaterThan(100);
  for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
});
