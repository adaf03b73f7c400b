/** One measurement, three uses: the result's metrics, the log and the histograms agree. */
import { describe, expect, it } from 'vitest';
import type { BatchUnit, UnitOutcome } from '../inference/runner-protocol.js';
import { lifeLog, wayOf } from './events.js';
import { createLogger, type LogLevel } from './logger.js';
import { createMetrics } from './metrics.js';
import { type BatchFacts, itemMetrics, observeClosed, observeDone } from './timings.js';

function setup(level: LogLevel = 'info') {
  const lines: string[] = [];
  const logger = createLogger({
    name: 'worker',
    level,
    destination: { write: (line) => void lines.push(line) },
  });
  return { observers: { metrics: createMetrics({ processMetrics: false }), life: lifeLog(logger) }, lines };
}

const unit = (requestId: string, traceId: string, acceptedAt: number, item = 0): BatchUnit => ({
  requestId,
  traceId,
  acceptedAt,
  item,
  rows: 2,
  token: 1,
  nonce: 'n',
  inline: true,
});

const batch: BatchFacts = {
  batchId: 'bat_1',
  workerId: 'w',
  device: 'cuda:0',
  deviceClass: 'cuda',
  model: 'm',
  version: '1',
  closedAt: 2_000,
  units: [unit('req_a', 'ta', 1_000), unit('req_a', 'ta', 1_000, 1), unit('req_b', 'tb', 1_900)],
  lanes: ['interactive', 'interactive', 'bulk'],
};

const written = (ok: boolean): UnitOutcome => ({ kind: 'written', ok, ended: ok ? 'succeeded' : 'failed' });
const times = (outcomes: UnitOutcome[]) => ({
  fetchMs: 1,
  runMs: 250,
  runs: [
    { rows: 4, seconds: 0.15 },
    { rows: 2, seconds: 0.1 },
  ],
  writeMs: 2.345,
  outcomes,
  doneAt: 3_000,
});

describe('the times of a batch', () => {
  it('are in the metrics of each item', () => {
    const run = { ...batch, provider: 'cuda', rows: 6, runMs: 12.3456 };
    expect(itemMetrics(run, 1_500, 2_100)).toEqual({
      queue_ms: 500,
      run_ms: 12.35,
      total_ms: 600,
      batch_rows: 6,
      batch_id: 'bat_1',
      worker_id: 'w',
      device: 'cuda:0',
      provider: 'cuda',
    });
  });

  it('are never negative, though the clocks of two machines differ', () => {
    const run = { ...batch, provider: 'cpu', rows: 1, runMs: 1 };
    expect(itemMetrics(run, 9_000, 8_000)).toMatchObject({ queue_ms: 0, total_ms: 0 });
  });

  it('are in the histograms', async () => {
    const { observers } = setup();
    observeClosed(batch, observers);
    observeDone(
      batch,
      times([written(true), written(false), { kind: 'dropped', reason: 'fenced' }]),
      observers,
    );
    const text = await observers.metrics.text();
    const place = 'model="m",version="1",device_class="cuda"';
    for (const line of [
      'remuda_queue_wait_seconds_sum{model="m",device_class="cuda",lane="interactive"} 2',
      'remuda_queue_wait_seconds_sum{model="m",device_class="cuda",lane="bulk"} 0.1',
      `remuda_run_seconds_sum{${place}} 0.25`,
      `remuda_batch_rows_sum{${place}} 6`,
      `remuda_batch_rows_count{${place}} 2`,
      `remuda_rows_total{${place}} 6`,
      `remuda_batches_total{${place},outcome="ok"} 1`,
      'remuda_request_seconds_count{model="m",lane="interactive"} 2',
      'remuda_fenced_writes_total{model="m",reason="fenced"} 1',
    ]) {
      expect(text).toContain(line);
    }
  });

  it('are in the log, each trace named once', () => {
    const { observers, lines } = setup();
    observeClosed(batch, observers);
    observeDone(
      batch,
      times([written(true), written(false), { kind: 'dropped', reason: 'expired' }]),
      observers,
    );
    expect(wayOf('ta', lines)).toMatchObject([
      {
        event: 'batched',
        batch_id: 'bat_1',
        trace_ids: ['ta', 'tb'],
        request_ids: ['req_a', 'req_b'],
        rows: 6,
      },
      { event: 'run', trace_ids: ['ta', 'tb'], run_ms: 250 },
      { event: 'written', succeeded: 1, failed: 1, dropped: 1, write_ms: 2.35 },
    ]);
  });

  it('cost no log lines at level warn', () => {
    const { observers, lines } = setup('warn');
    observeClosed(batch, observers);
    observeDone(batch, times([written(true), written(true), written(true)]), observers);
    expect(lines).toEqual([]);
  });
});
