import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { actor } from './actor.js';
import { record } from './answers.fixture.js';

const at = '2026-01-01T10:00:00.000Z';
const delivery = {
  ...{ id: 'msg_1', type: 'request.failed', subject: 'req_1', tenant: 'default', endpoint_id: null },
  ...{ url: 'https://example.org/hook', payload: 'full', state: 'pending', reason: null, attempts_made: 1 },
  attempts: [{ at, outcome: 'answer', status: 500, error: 'answered 500: expected 2xx', duration_ms: 12 }],
  ...{ next_attempt_at: '2026-01-01T10:00:05.000Z', created_at: at, expires_at: at, trace_id: 'abc' },
};
const endpoint = {
  ...{ id: 'whe_1', tenant: 'acme', url: 'https://example.org/hook', events: ['request.failed'] },
  ...{ payload: 'thin', key_id: null, created_at: at, disabled: { at, reason: 'it answered 410' } },
};
const secret = { tenant: 'acme', secret: `whsec_${'A'.repeat(43)}=`, created_at: at, previous_until: at };

describe('remuda webhooks', () => {
  it('lists those of a request, with what came of the last attempt', async () => {
    const path = 'GET /v1/requests/req_1/webhooks';
    const { run, terminal } = await setup({ [path]: { body: { deliveries: [delivery] } } });
    expect(await run(['webhooks', 'list', 'req_1'])).toBe(0);
    expect(terminal.answers[1]).toMatch(/^msg_1 {2,}request\.failed {2,}pending {2,}1 {2,}answered 500/);
  });

  it('says so where nobody is told', async () => {
    const { run, terminal } = await setup({
      'GET /v1/requests/req_1/webhooks': { body: { deliveries: [] } },
    });
    expect(await run(['webhooks', 'list', 'req_1'])).toBe(0);
    expect(terminal.answers).toEqual(['Nobody is told of this request, or it has not ended yet.']);
  });

  it('shows one with each attempt, or its body alone', async () => {
    const detail = { ...delivery, body: '{"type":"request.failed"}' };
    const { run, terminal } = await setup({ 'GET /v1/webhooks/msg_1': { body: detail } });
    expect(await run(['webhooks', 'show', 'msg_1'])).toBe(0);
    expect(terminal.answers).toContain('  body       full, 25 bytes');
    expect(terminal.answers.at(-1)).toMatch(/^2026-01-01 10:00:00 {2}answer {3}12 {2}answered 500/);
    terminal.answers.length = 0;
    expect(await run(['webhooks', 'show', 'msg_1', '--body'])).toBe(0);
    expect(terminal.answers).toEqual(['{"type":"request.failed"}']);
  });

  it('sends one once more', async () => {
    const path = 'POST /v1/webhooks/msg_1/redeliver';
    const { run, terminal } = await setup({ [path]: { status: 202, body: delivery } });
    expect(await run(['webhooks', 'redeliver', 'msg_1', '--json'])).toBe(0);
    expect(JSON.parse(terminal.answers.join('\n'))).toEqual(delivery);
  });
});

describe('remuda webhooks endpoints', () => {
  it('lists them, with why one is disabled', async () => {
    const path = 'GET /v1/webhooks/endpoints?tenant=acme';
    const { run, terminal } = await setup({ [path]: { body: { endpoints: [endpoint] } } });
    expect(await run(['webhooks', 'endpoints', 'list', '--tenant', 'acme'])).toBe(0);
    expect(terminal.answers.join('\n')).toContain('disabled: it answered 410');
  });

  it('adds, enables and removes one', async () => {
    const { run, sent } = await setup({
      'POST /v1/webhooks/endpoints': { status: 201, body: endpoint },
      'POST /v1/webhooks/endpoints/whe_1:enable': { body: endpoint },
      'DELETE /v1/webhooks/endpoints/whe_1': { body: null },
    });
    const add = ['webhooks', 'endpoints', 'add', endpoint.url, '--thin', '--events', 'request.failed'];
    expect(await run(add)).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      ...{ url: endpoint.url, events: ['request.failed'], payload: 'thin' },
    });
    expect(await run(['webhooks', 'endpoints', 'enable', 'whe_1'])).toBe(0);
    expect(await run(['webhooks', 'endpoints', 'remove', 'whe_1'])).toBe(0);
    expect(sent.map(({ actor: by }) => by)).toEqual([actor(), actor(), actor()]);
  });

  it('knows which events there are', async () => {
    const { run, notes } = await setup();
    expect(await run(['webhooks', 'endpoints', 'add', endpoint.url, '--events', 'request.begun'])).toBe(2);
    expect(notes()).toContain('request.succeeded');
  });
});

describe('remuda webhooks secret', () => {
  it('is alone on standard output, so that it can be put into a variable', async () => {
    const { run, terminal, notes } = await setup({ 'GET /v1/webhooks/secret': { body: secret } });
    expect(await run(['webhooks', 'secret'])).toBe(0);
    expect(terminal.answers).toEqual([secret.secret]);
    expect(notes()).toContain(at);
  });

  it('is rotated with an overlap', async () => {
    const { run, sent } = await setup({ 'POST /v1/webhooks/secret:rotate': { body: secret } });
    for (const overlap of ['60', '60s', '1m']) {
      expect(await run(['webhooks', 'secret', '--rotate', '--overlap', overlap])).toBe(0);
      expect(JSON.parse(sent.at(-1)?.body ?? '')).toEqual({ overlap_s: 60 });
    }
    expect(await run(['webhooks', 'secret', '--overlap', '60'])).toBe(2);
  });
});

it('remuda submit --webhook sends it with the request', async () => {
  const { run, sent } = await setup({ 'POST /v1/models/add/requests': { status: 202, body: record } });
  expect(await run(['submit', 'add', '--input', 'a=1', '--webhook', 'https://example.org/'])).toBe(0);
  expect(JSON.parse(sent[0]?.body ?? '')).toEqual({ inputs: { a: 1 }, webhook: 'https://example.org/' });
});
