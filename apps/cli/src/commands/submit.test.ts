import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { metrics, record, result } from './answers.fixture.js';

const POST = 'POST /v1/models/add/requests';
const inputs = ['--input', 'a=[[1,2]]', '--input', 'b=text', '--input', 'c=3'];

describe('remuda submit', () => {
  it('sends named inputs, and shows the record with its notices', async () => {
    const { run, sent, terminal } = await setup({ [POST]: { status: 202, body: record } });
    expect(await run(['submit', 'add', ...inputs, '--priority', '0', '--timeout-ms', '500'])).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      inputs: { a: [[1, 2]], b: 'text', c: 3 },
      metadata: { priority: 0, timeout_ms: 500 },
    });
    expect(sent[0]?.prefer).toBeUndefined();
    expect(terminal.answers).toEqual([
      'req_1  queued  add version 1, 1 item, 1 row, on cpu',
      '  no live worker serves the model',
      '  remuda result req_1 --wait 30',
    ]);
  });

  it('sends a key of the call, in quotes', async () => {
    const { run, sent } = await setup({ [POST]: { status: 202, body: record } });
    expect(await run(['submit', 'add', ...inputs, '--idempotency-key', 'order "7"'])).toBe(0);
    expect(await run(['submit', 'add', ...inputs])).toBe(0);
    expect(sent.map(({ onceKey }) => onceKey)).toEqual(['"order \\"7\\""', undefined]);
  });

  it('names a version, by number or alias', async () => {
    const { run, sent } = await setup({ [POST]: { status: 202, body: record } });
    expect(await run(['submit', 'add', ...inputs, '--version', 'canary'])).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      inputs: { a: [[1, 2]], b: 'text', c: 3 },
      version: 'canary',
    });
  });

  it('waits with --wait, and shows the answer and its way', async () => {
    const { run, sent, terminal } = await setup({
      [POST]: { body: { ...result, model_extra: { feels: ['warm'] } } },
    });
    expect(await run(['submit', 'add', ...inputs, '--wait', '20'])).toBe(0);
    expect(sent[0]?.prefer).toBe('wait=20');
    expect(terminal.answers).toEqual([
      'req_1  succeeded  add version 1',
      'item  status     answer           batch  queue ms  run ms  total ms',
      '0     succeeded  sum [3, 0.1235]      4       1.3     2.0     1,235',
      'feels warm',
    ]);
  });

  it('ends with 4 when the wait is over first', async () => {
    const { run, terminal } = await setup({
      [POST]: { status: 202, body: record },
      'GET /v1/requests/req_1?wait=1': { body: { ...record, status: 'running' } },
      'GET /v1/requests/req_1': { body: { ...record, status: 'running' } },
      'GET /v1/requests/req_1/result': { status: 202, body: { ...record, status: 'running' } },
    });
    expect(await run(['submit', 'add', ...inputs, '--wait', '1'])).toBe(4);
    expect(terminal.answers[0]).toMatch(/^req_1 {2}running/);
  });

  it('ends with 1 when an item failed, and says which and why', async () => {
    const error = { code: 'item_rejected', message: 'no image', retryable: false };
    const items = [
      { id: 'a.png', index: 0, status: 'succeeded', outputs: {}, error: null, metrics, model_extra: {} },
      { id: 'b.png', index: 1, status: 'failed', outputs: null, error, metrics: null, model_extra: {} },
    ];
    const body = { ...result, status: 'partial', outputs: null, items };
    const { run, terminal } = await setup({ [POST]: { body } });
    expect(await run(['submit', 'add', ...inputs, '--wait', '1'])).toBe(1);
    expect(terminal.answers.at(-1)).toBe('b.png: item_rejected: no image');
  });

  it('reads a request from standard input', async () => {
    const { run, sent, terminal } = await setup({ [POST]: { status: 202, body: record } });
    const request = '{"inputs": {"a": 1}, "metadata": {"priority": 3, "tags": {"x": "y"}}}';
    expect(await run(['submit', 'add', '-', '--priority', '1', '--json'], request)).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      inputs: { a: 1 },
      metadata: { priority: 1, tags: { x: 'y' } },
    });
    expect(JSON.parse(terminal.answers.join('\n'))).toEqual(record);
  });

  it('sends images as a form, under the name of the image input', async () => {
    const detail = {
      name: 'add',
      description: '',
      labels: {},
      versions: ['1'],
      default_version: '1',
      aliases: {},
      states: { ready: 1 },
      workers: 1,
      queues: [],
      problems: [],
      config: null,
      signature: {
        model: 'add',
        version: '1',
        digest: 'd',
        harness: 'h',
        inputs: [{ name: 'photo', datatype: 'BYTES', shape: ['N'], batch_axis: 0, kind: 'image' }],
        outputs: [],
        batchable: true,
        max_batch_size: 1,
        padding: [],
        parameters_schema: null,
        streams: false,
        affinity: ['cpu'],
      },
    };
    const { run, sent } = await setup({
      'GET /v1/models/add': { body: detail },
      [POST]: { status: 202, body: record },
    });
    const images = ['config.ts', 'main.ts'];
    expect(await run(['submit', 'add', '--image', ...images, '--priority', '2'])).toBe(0);
    const { type, body = '' } = sent[1] ?? {};
    expect(type).toMatch(/^multipart\/form-data; boundary=/);
    for (const name of images) expect(body).toContain(`name="photo"; filename="${name}"`);
    expect(body).toContain('{"metadata":{"priority":2}}');
  });

  it('shows a problem of the API with its paths', async () => {
    const errors = [{ path: 'inputs.a', expected: 'FP32', received: 'BYTES' }];
    const problem = {
      type: 'x',
      title: 'No fit.',
      status: 422,
      detail: '',
      code: 'invalid_input',
      retryable: false,
      errors,
    };
    const { run, notes } = await setup({ [POST]: { status: 422, body: problem } });
    expect(await run(['submit', 'add', ...inputs])).toBe(1);
    expect(notes()).toBe('invalid_input (422): No fit.\n  inputs.a: expected FP32, received BYTES');
  });
});
