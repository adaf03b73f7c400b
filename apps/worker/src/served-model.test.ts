import type { ModelSource } from '@remuda/core/harness/harness';
import type { BatchOrder, BatchReport } from '@remuda/core/inference/runner-process';
import { SharedGate } from '@remuda/core/inference/shared-gate';
import { lifeLog } from '@remuda/core/observability/events';
import { createLogger } from '@remuda/core/observability/logger';
import { createMetrics } from '@remuda/core/observability/metrics';
import type { OutcomeExtras, UnitWrite } from '@remuda/core/store/outcome';
import { decodeFrame, HarnessConfig, type Lane, type ModelSignature } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { RateMeter } from './rate-meter.js';
import { exposeServed } from './served-gauges.js';
import { type ServedItem, ServedModel } from './served-model.js';

/** A served model over a runner that answers as the test says; `seconds` is what each run takes by its rows. */
function setup(config: Record<string, unknown> = {}) {
  let now = 1_000_000;
  let ids = 0;
  const clock = { now: () => now, after: () => () => {} };
  const metrics = createMetrics({ processMetrics: false });
  const logger = createLogger({ name: 'worker', level: 'silent', destination: { write: () => {} } });
  const runs: number[] = [];
  const orders: BatchOrder[] = [];
  const writes: UnitWrite[] = [];
  const runner = {
    healthy: true,
    seconds: (rows: number) => rows / 1_000,
    held: undefined as Promise<void> | undefined,
  };
  const source: ModelSource = {
    modelId: 'm@1',
    model: 'm',
    version: '1',
    digest: 'd',
    folder: '/nowhere',
    config: HarnessConfig.parse({ harness: 'onnx', max_batch_size: 8, ...config }),
    device: 'cpu',
  };
  const served = new ServedModel({
    source,
    signature: { batchable: true } as ModelSignature,
    deviceClass: 'cpu',
    workerId: 'w',
    gate: new SharedGate(),
    clock,
    rates: new RateMeter(clock),
    logger,
    observers: { metrics, life: lifeLog(logger) },
    store: {
      writeOutcomes: async (given) => {
        writes.push(...given);
        return given.map(() => ({ verdict: 'written' as const, ended: 'failed' as const }));
      },
    },
    runner: {
      run: async (order: BatchOrder): Promise<BatchReport> => {
        const { units } = order;
        orders.push(order);
        await runner.held;
        const rows = units.reduce((sum, unit) => sum + unit.rows, 0);
        runs.push(rows);
        const outcomes = units.map(() =>
          runner.healthy
            ? { kind: 'written' as const, ok: true, ended: 'succeeded' as const }
            : { kind: 'written' as const, ok: false, code: 'inference_failed', ended: 'failed' as const },
        );
        return {
          outcomes,
          fetchMs: 0,
          runMs: 1,
          writeMs: 0,
          runs: [{ rows, seconds: runner.seconds(rows) }],
        };
      },
    },
  });
  const item = (lane: Lane = 'interactive', change: Partial<ServedItem> = {}): ServedItem => {
    const requestId = `r${ids++}`;
    return {
      rows: 1,
      group: 'g',
      laneRank: lane === 'interactive' ? 0 : 1,
      tenant: 'default',
      weight: 1,
      priority: 5,
      deadline: 0,
      finishDeadline: 0,
      failures: 0,
      acceptedAt: now - 100,
      arrivedAt: now,
      lane,
      unit: {
        requestId,
        token: 1,
        item: 0,
        rows: 1,
        nonce: 'n',
        inline: true,
        traceId: 't',
        acceptedAt: now - 100,
      },
      ...change,
    };
  };
  const submit = (count: number, lane?: Lane) =>
    Promise.all(Array.from({ length: count }, () => served.submit(item(lane))));
  /** One item that must have ended within so many milliseconds. */
  const submitFor = (finishMs: number) =>
    served.submit(item('interactive', { finishDeadline: now + finishMs }));
  return {
    ...{ served, runner, runs, orders, writes, metrics, submit, submitFor },
    advance: (ms: number) => (now += ms),
  };
}

async function fail(times: number, { runner, submit }: ReturnType<typeof setup>): Promise<void> {
  runner.healthy = false;
  for (let i = 0; i < times; i++) await submit(1);
}

describe('a served model and the deadline to finish', () => {
  const written = (writes: readonly UnitWrite[]) =>
    writes.map(({ kind, frame }) => ({ kind, ...(decodeFrame(frame).extras as OutcomeExtras) }));

  it('does not run what is expected to be over too late, and says how long a run takes', async () => {
    const { runner, runs, writes, submit, submitFor } = setup();
    runner.seconds = () => 0.2;
    await submit(1);
    expect(await submitFor(150)).toMatchObject({ kind: 'written', ok: false, code: 'deadline_exceeded' });
    expect(runs).toHaveLength(1);
    expect(written(writes)).toMatchObject([
      {
        kind: 'expired',
        error: {
          code: 'deadline_exceeded',
          message:
            'it was not run: a run is expected to take 200 ms, and 150 ms were left until its deadline to finish',
          details: { deadline: 'finish', expected_run_ms: 200, left_ms: 150 },
        },
      },
    ]);
  });

  it('tells the runner how long a run takes, so that it can look again just before', async () => {
    const { runner, orders, submit, submitFor } = setup();
    runner.seconds = () => 0.2;
    await submit(1);
    await submitFor(1_000);
    expect(orders.map(({ expectedRunMs }) => expectedRunMs)).toEqual([undefined, 200]);
  });

  it('runs all the same where nothing was measured, or not for a while: else it would never be measured again', async () => {
    const { runner, runs, submit, submitFor, advance } = setup();
    runner.seconds = () => 0.2;
    await submitFor(150);
    expect(runs).toHaveLength(1);
    await submit(1);
    advance(5_001);
    await submitFor(150);
    expect(runs).toHaveLength(3);
  });
});

describe('a served model whose runs keep failing', () => {
  it('refuses items while its breaker is open, tries one batch after the pause, and serves again when that is well', async () => {
    const rig = setup();
    const { served, runner, runs, submit, advance } = rig;
    await fail(5, rig);
    expect(served.facts().breaker).toBe('open');
    expect(await submit(2)).toEqual(['refused', 'refused']);
    expect(runs).toHaveLength(5);
    expect(served.retryAfterMs).toBe(1_000);

    advance(1_000);
    expect(served.facts().breaker).toBe('half_open');
    runner.healthy = true;
    expect(await submit(1)).toMatchObject([{ ok: true }]);
    expect(served.facts().breaker).toBe('closed');
  });

  it('hands back what waits when the probe fails, and runs no second batch beside the probe', async () => {
    const rig = setup({ max_batch_size: 1, instances: 2 });
    const { runner, runs, submit, advance } = rig;
    await fail(5, rig);
    advance(1_000);
    const ends = await submit(4);
    expect(runs).toHaveLength(6);
    expect(ends.slice(1)).toEqual(['refused', 'refused', 'refused']);
    expect(runner.healthy).toBe(false);
    expect(await submit(1)).toEqual(['refused']);
  });

  it('says so in the metrics', async () => {
    const rig = setup();
    exposeServed(rig.metrics, () => [rig.served]);
    await fail(5, rig);
    const text = await rig.metrics.text();
    expect(text).toContain('remuda_breaker_state{model="m",version="1",device="cpu"} 2');
    expect(text).toContain('remuda_breaker_opened_total{model="m",version="1",device_class="cpu"} 1');
  });
});

describe('a served model', () => {
  it('tells the heartbeat what it has measured, when it was used and what it holds', async () => {
    const { served, runner, submit } = setup({ instances: 2 });
    expect(served.facts()).toEqual({
      instances: 2,
      last_used_at: null,
      backlog_rows: 0,
      seconds_per_row: null,
      run_seconds: null,
      breaker: 'closed',
    });
    let release = () => {};
    runner.held = new Promise((resolve) => {
      release = resolve;
    });
    const done = submit(8);
    expect(served.facts()).toMatchObject({ backlog_rows: 8, last_used_at: '1970-01-01T00:16:40.000Z' });
    release();
    await done;
    // 8 rows took 8 ms; two instances would do twice as much.
    expect(served.facts()).toMatchObject({ run_seconds: 0.008, seconds_per_row: 0.0005, backlog_rows: 0 });
  });

  it('takes settings while it serves: the next batch is formed by them', async () => {
    const { served, runs, submit } = setup();
    await submit(8);
    served.apply({ maxBatchSize: 4, instances: 3 });
    await submit(8);
    expect(runs).toEqual([8, 4, 4]);
    expect(served.wantedInFlight).toBe((3 + 2) * 4 * 4);
    expect(served.facts().instances).toBe(3);
  });

  it('hands short runs on several at a time while its instance is busy, long ones one by one', async () => {
    const { served, runner, runs, submit } = setup({ max_batch_size: 4 });
    await submit(4);
    expect(served.wantedInFlight).toBe((1 + 2) * 4 * 4);
    await submit(24);
    expect(runs.splice(0)).toEqual([4, 4, 16, 4]);

    runner.seconds = () => 0.1;
    for (let i = 0; i < 40; i++) await submit(4);
    expect(served.wantedInFlight).toBe((2 + 2) * 4);
    runs.length = 0;
    await submit(12);
    expect(runs).toEqual([4, 4, 4]);
  });

  it('hands runs on one by one where the latency objective decides what a batch holds', async () => {
    const { runs, submit } = setup({ max_batch_size: 4, latency_objective_ms: 100 });
    await submit(4);
    await submit(12);
    expect(runs).toEqual([4, 4, 4, 4]);
  });

  it('makes smaller batches where the runs take longer than the latency objective, and shows the limit', async () => {
    const { served, runs, submit, metrics } = setup({ latency_objective_ms: 5 });
    exposeServed(metrics, () => [served]);
    for (let i = 0; i < 5; i++) await submit(8);
    expect(runs.slice(0, 2)).toEqual([8, 8]);
    expect(runs.at(-1)).toBeLessThanOrEqual(5);
    expect(await metrics.text()).toContain(
      `remuda_batch_limit{model="m",version="1",device="cpu"} ${served.batchLimit}`,
    );
    served.apply({ latencyObjectiveMs: null });
    expect(served.batchLimit).toBe(8);
  });

  it('counts each item in its own lane, though a batch mixes them', async () => {
    const { submit, metrics } = setup();
    await Promise.all([submit(2, 'interactive'), submit(3, 'bulk')]);
    const text = await metrics.text();
    expect(text).toContain('remuda_request_seconds_count{model="m",lane="interactive"} 2');
    expect(text).toContain('remuda_request_seconds_count{model="m",lane="bulk"} 3');
    expect(text).toContain('remuda_queue_wait_seconds_count{model="m",device_class="cpu",lane="bulk"} 3');
  });
});
