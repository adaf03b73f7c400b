import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { at, metrics, record, result } from './answers.fixture.js';

const later = (ms: number) => new Date(Date.parse(at) + ms).toISOString();
const candidate = { workers: 1, instances: 2, seconds_per_row: 0.01 };
const route = {
  device_class: 'cpu',
  lane: 'interactive',
  reasons: ['the model prefers cuda, then cpu', 'cuda would take 5.01 s, cpu 0.5 s'],
  version_reason: 'the alias stable leads to 1',
  facts_age_ms: 420,
  candidates: [
    { ...candidate, device_class: 'cuda', rows_ahead: 500, expected_s: 5.01, verdict: 'expected later' },
    {
      ...candidate,
      device_class: 'cpu',
      instances: 1,
      rows_ahead: 0,
      seconds_per_row: null,
      expected_s: null,
      verdict: 'chosen',
    },
  ],
};

describe('remuda trace', () => {
  it('shows the decision, the life and where each item ran', async () => {
    const ended = {
      ...record,
      status: 'succeeded',
      route,
      attempts: 1,
      notices: [],
      started_at: later(12.5),
      finished_at: later(40),
    };
    const { run, terminal } = await setup({
      'GET /v1/requests/req_1': { body: ended },
      'GET /v1/requests/req_1/result': {
        body: { ...result, route, metrics: { ...metrics, device: 'cuda:0' } },
      },
    });
    expect(await run(['trace', 'req_1'])).toBe(0);
    expect(terminal.answers).toMatchInlineSnapshot(`
      [
        "req_1  succeeded  add version 1, 1 item, 1 row",
        "",
        "decision",
        "  the alias stable leads to 1",
        "  the model prefers cuda, then cpu",
        "  cuda would take 5.01 s, cpu 0.5 s",
        "class  workers  instances  rows ahead  ms/row  expected ms  verdict",
        "cuda         1          2         500    10.0        5,010  expected later",
        "cpu          1          1           0       ?            ?  chosen",
        "what the fleet and its queues were 420 ms before",
        "",
        "life",
        "  accepted  2026-01-01T00:00:00.000Z  +0.0 ms",
        "  started   2026-01-01T00:00:00.012Z  +12.0 ms",
        "  succeeded 2026-01-01T00:00:00.040Z  +40.0 ms",
        "  taken up 1 time",
        "",
        "ran",
        "item  status     worker  device  provider  batch rows  queue ms  run ms  total ms",
        "0     succeeded  w       cuda:0  cpu                4       1.3     2.0     1,235",
      ]
    `);
  });

  it('shows where a request stands that waits, and when it is expected to have ended', async () => {
    const queue = { position: 3, rows_ahead: 12, eta_ms: 1_500, eta_at: later(2_000) };
    const { run, terminal } = await setup({
      'GET /v1/requests/req_1': { body: { ...record, route, queue } },
    });
    expect(await run(['trace', 'req_1'])).toBe(0);
    expect(terminal.answers.slice(-5)).toMatchInlineSnapshot(`
      [
        "life",
        "  accepted  2026-01-01T00:00:00.000Z  +0.0 ms",
        "  3 requests and 12 rows before it",
        "  expected  2026-01-01T00:00:02.000Z  +2,000 ms",
        "  taken up 0 times",
      ]
    `);
  });
});
