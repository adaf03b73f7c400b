/** Deadlines through the real processes: in the runner just before a run, while it runs, and where no worker lives. */
import { rmSync } from 'node:fs';
import type { RequestMetadata, RequestRecord } from '@remuda/schemas';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { Gate } from '../support/gate.js';
import { testModels } from '../support/test-models.js';

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

const inputs = { x: { datatype: 'FP32', shape: [1, 1], data: [1] } };

async function submit(model: string, metadata: Partial<RequestMetadata> = {}): Promise<string> {
  const { status, body } = await fleet.api.submit(model, { inputs, metadata });
  expect(status, JSON.stringify(body)).toBe(202);
  return body.request_id;
}

const untilRunning = (id: string): Promise<void> =>
  expect.poll(async () => (await fleet.api.record(id)).status, { timeout: 60_000 }).toBe('running');
const ended = (id: string): Promise<RequestRecord> => fleet.api.record(id, 60);

it('a request that runs beyond its deadline to finish ends as expired at once, and its answer is thrown away', async () => {
  let late = '';
  await gate.closedWhile(async () => {
    late = await submit('gated', { finish_timeout_ms: 1_500 });
    await untilRunning(late);
    expect(await ended(late)).toMatchObject({ status: 'expired', error: { code: 'deadline_exceeded' } });
  });
  // What comes behind it on the same instance has run when the late answer has been written, or refused.
  expect(await ended(await submit('gated'))).toMatchObject({ status: 'succeeded' });
  expect(await fleet.api.result(late)).toMatchObject({ status: 'expired', outputs: null });
});

it('a batch that was handed on before its deadline to start, and whose turn comes after it, is not run', async () => {
  let waiting = '';
  await gate.closedWhile(async () => {
    const running = await submit('gated');
    await untilRunning(running);
    waiting = await submit('gated', { timeout_ms: 2_000 });
    // The worker has handed it on: the runner has claimed it, and its instance is busy.
    await untilRunning(waiting);
    const { deadline_at } = await fleet.api.record(waiting);
    await expect
      .poll(() => Date.now(), { timeout: 60_000 })
      .toBeGreaterThan(Date.parse(deadline_at as string));
  });
  expect(await ended(waiting)).toMatchObject({ status: 'expired' });
  expect((await fleet.api.result(waiting)).error).toMatchObject({
    code: 'deadline_exceeded',
    message: 'the deadline to start passed while it waited for its run',
  });
});

it('its states come as events, from the first to the end', async () => {
  let text = '';
  await gate.closedWhile(async () => {
    const id = await submit('gated');
    const response = await fetch(`${fleet.api.url}/v1/requests/${id}/events`);
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    await untilRunning(id);
    gate.open();
    text = await response.text();
  });
  const events = [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(
    ([, event, data]) => `${event} ${(JSON.parse(data as string) as RequestRecord).status}`,
  );
  expect(events.at(-1)).toBe('ended succeeded');
  expect(new Set(events.slice(0, -1))).not.toContain('ended succeeded');
  expect(events.every((event) => /^(state (queued|running)|ended succeeded)$/.test(event))).toBe(true);
  const unknown = await fleet.api.get('/v1/requests/nobody/events');
  expect(unknown.status).toBe(404);
});

it('where no worker lives the API keeps deadlines, and nobody has to ask', async () => {
  for (const worker of fleet.workers.splice(0)) {
    worker.child.kill('SIGKILL');
    await worker.ended;
  }
  const id = await submit('gated', { timeout_ms: 300 });
  await expect
    .poll(() => fleet.logged('expired').map(({ request_id }) => request_id), { timeout: 120_000 })
    .toContain(id);
  expect(await fleet.api.record(id)).toMatchObject({
    status: 'expired',
    error: { code: 'deadline_exceeded', details: { deadline: 'start' } },
  });
});
