/** Failures that are tried again, and what is given up: kept with its inputs, run again, thrown away. */
import { rmSync } from 'node:fs';
import type { DeadLetter, DeadLetterPage, InferenceResult, RedriveAnswer } from '@remuda/schemas';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

const SETTLED_S = 120;

let models: string;
let fleet: Fleet;
beforeAll(async () => {
  models = await testModels();
  fleet = await Fleet.start({ models, env: { REMUDA_WORKER_MODELS: 'flaky,crash-on-mark,image-width' } });
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(models, { recursive: true, force: true });
});

const row = (...data: number[]) => ({
  datatype: 'FP32',
  shape: [1, 4],
  data: [...data, 0, 0, 0, 0].slice(0, 4),
});

async function submit(model: string, request: unknown): Promise<string> {
  const { status, body } = await fleet.api.submit(model, request);
  expect(status).toBe(202);
  return body.request_id;
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
  const response = await fetch(`${fleet.api.url}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as T };
}

async function ended(id: string): Promise<InferenceResult> {
  await expect
    .poll(async () => (await fleet.api.record(id)).finished_at, { timeout: SETTLED_S * 1000 })
    .not.toBeNull();
  return (await ask<InferenceResult>('GET', `/v1/requests/${id}/result`)).body;
}

const letter = (id: string) => ask<DeadLetter>('GET', `/v1/dead-letters/${id}`);

it('a failure that passes is tried again as the model says, and nobody notices', async () => {
  const id = await submit('flaky', { inputs: { x: row(13, 2, 1) } });
  const result = await ended(id);
  expect(result).toMatchObject({ status: 'succeeded', attempts: 3 });
  expect((await letter(id)).status).toBe(404);
});

it('one that stays is given up after as many attempts, and its batch mates are not', async () => {
  const items = [row(1), row(13, 99, 2), row(2)].map((x, i) => ({ id: `item-${i}`, inputs: { x } }));
  const id = await submit('flaky', { items });
  expect(await ended(id)).toMatchObject({
    status: 'partial',
    items: [
      { status: 'succeeded' },
      { status: 'failed', error: { code: 'inference_failed' } },
      { status: 'succeeded' },
    ],
  });
  const { body } = await letter(id);
  expect(body).toMatchObject({
    request_id: id,
    class: 'model',
    code: 'inference_failed',
    attempts: 3,
    items_total: 3,
    items: [{ index: 1, id: 'item-1' }],
    redriven_as: null,
  });
  expect(body.input_bytes).toBeGreaterThan(16);
});

it('what was given up runs again as a new request with the items that failed, once however often it is asked', async () => {
  // Fails five times: three of the first request, two of the second.
  const id = await submit('flaky', { items: [{ inputs: { x: row(13, 5, 3) } }, { inputs: { x: row(4) } }] });
  expect((await ended(id)).status).toBe('partial');
  const answer = await ask<RedriveAnswer>('POST', '/v1/dead-letters:redrive', { choose: { ids: [id] } });
  const [redriven] = answer.body.redriven;
  expect(answer.body).toEqual({
    redriven: [{ request_id: id, redriven_as: redriven?.redriven_as }],
    refused: [],
  });
  const again = await ended(redriven?.redriven_as as string);
  expect(again).toMatchObject({
    status: 'succeeded',
    items: [{ index: 0, outputs: { y: { data: [13, 5, 3, 0] } } }],
  });
  expect((await letter(id)).status).toBe(404);
  expect((await ask('POST', `/v1/dead-letters/${id}/redrive`)).status).toBe(404);
});

it('an input that kills its runner is kept as a crash', async () => {
  const id = await submit('crash-on-mark', { inputs: { x: row(777) } });
  expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'runner_crashed' } });
  expect((await letter(id)).body).toMatchObject({ class: 'crash', code: 'runner_crashed', items_total: 1 });
});

it('letters are listed newest first, by model and class, and can be thrown away', async () => {
  const { body } = await ask<DeadLetterPage>('GET', '/v1/dead-letters?class=crash&model=crash-on-mark');
  expect(body.dead_letters.map(({ class: of }) => of)).toEqual(['crash']);
  const [crashed] = body.dead_letters as [DeadLetter];
  expect((await ask('DELETE', `/v1/dead-letters/${crashed.request_id}`)).status).toBe(204);
  expect((await letter(crashed.request_id)).body).toMatchObject({ code: 'dead_letter_not_found' });
  expect((await ask('POST', '/v1/dead-letters:discard', { model: 'flaky' })).body).toEqual({ discarded: 1 });
  expect((await ask<DeadLetterPage>('GET', '/v1/dead-letters')).body.total).toBe(0);
});

it('a choice that chooses nothing, and a class that there is not, are refused with their path', async () => {
  expect((await ask('POST', '/v1/dead-letters:discard', {})).body).toMatchObject({
    status: 422,
    code: 'invalid_request',
  });
  expect((await ask('GET', '/v1/dead-letters?class=bad')).body).toMatchObject({
    errors: [{ path: 'query.class' }],
  });
});
