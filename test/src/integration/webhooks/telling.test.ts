/** What is told when a request has ended: to whom, in which form, signed how, and once for each address. */
import { itemError } from '@remuda/core/errors';
import { requestEnded } from '@remuda/core/webhooks/request-ended';
import { InferenceResult, RequestEventData, WebhookMessage } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { outcome, stored, submission, tensor, unitOf } from '../requests/rig.js';
import { type Rig, setup } from './rig.js';

const OWN_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

/** A request that ends with one result of that many elements. */
async function endedWith(id: string, elements: number): Promise<void> {
  const sent = submission({ id });
  sent.options.webhook = rig.sink.url;
  await rig.cases.submit(sent);
  const record = await stored(rig.store, id);
  if (!record) throw new Error('not stored');
  const unit = unitOf(record);
  await rig.store.claimAndFetch([unit], 'worker');
  await rig.store.writeOutcomes([outcome(unit, 'ok', [tensor('y', 1.5, 1, elements)])]);
}

describe('a request that asked for it', () => {
  it('is told with record and result, in the form of Standard Webhooks', async () => {
    await rig.deliver();
    await rig.ended('good', rig.sink.url);
    const [received] = await rig.sink.count(1);
    const body = await rig.verified(received);
    expect(WebhookMessage.parse(body).type).toBe('request.succeeded');
    const { request, result } = RequestEventData.parse(body.data);
    expect(request).toMatchObject({ request_id: 'good', status: 'succeeded' });
    expect(body.timestamp).toBe(request.finished_at);
    expect(InferenceResult.parse(result).outputs?.y).toMatchObject({ datatype: 'FP32', shape: [1, 4] });
    const got = await rig.cases.result('good');
    expect(result?.finished_at).toBe(got?.finished_at);
  });

  it('carries its trace and says who it is', async () => {
    await rig.deliver();
    await rig.ended('traced', rig.sink.url);
    const headers = (await rig.sink.count(1))[0]?.headers ?? {};
    expect(headers.traceparent).toMatch(/^00-a{32}-[0-9a-f]{16}-01$/);
    expect(headers['content-type']).toBe('application/json');
    const delivery = await rig.delivery('traced', 'delivered');
    expect(headers['webhook-id']).toBe(delivery.id);
    await expect
      .poll(() => rig.log.find(({ event }) => event === 'delivered'))
      .toMatchObject({ trace_id: 'a'.repeat(32), request_id: 'traced', by: 'webhook' });
  });

  it.each([
    ['partial', ['ok', 'error']],
    ['failed', ['error']],
  ] as const)('is told when it ended as %s', async (status, outcomes) => {
    await rig.deliver();
    await rig.ended(`ends-${status}`, rig.sink.url, { outcomes: [...outcomes] });
    const body = await rig.verified((await rig.sink.count(1))[0]);
    expect(body).toMatchObject({ type: `request.${status}`, data: { request: { status } } });
  });

  it.each(['cancelled', 'expired'] as const)('is told when it was %s', async (status) => {
    await rig.deliver();
    const sent = submission({ id: 'stopped' });
    sent.options.webhook = rig.sink.url;
    await rig.cases.submit(sent);
    const code = status === 'cancelled' ? 'cancelled' : 'deadline_exceeded';
    await rig.store.end('stopped', status, itemError(code, 'over'));
    const body = await rig.verified((await rig.sink.count(1))[0]);
    expect(body).toMatchObject({ type: `request.${status}`, data: { result: { error: { code } } } });
  });

  it('is not told of what it did not ask for', async () => {
    await rig.deliver();
    await rig.ended('quiet', { url: rig.sink.url, events: ['request.failed'] });
    await rig.ended('loud', { url: rig.sink.url, events: ['request.failed'] }, { outcomes: ['error'] });
    const received = await rig.sink.count(1);
    await rig.delivery('loud', 'delivered');
    expect(received.map(({ body }) => JSON.parse(body).data.request.request_id)).toEqual(['loud']);
    expect(await rig.cases.webhooks.deliveriesOf('quiet', null)).toEqual([]);
  });

  it('gets the record alone where it asked for thin', async () => {
    await rig.deliver();
    await rig.ended('thin', { url: rig.sink.url, payload: 'thin' });
    const body = await rig.verified((await rig.sink.count(1))[0]);
    expect(Object.keys(body.data)).toEqual(['request']);
  });

  it.each([
    ['its JSON', 100_000],
    ['what is stored of it', 400_000],
  ])('gets the record alone, and why, where %s is larger than 256 KiB', async (_, elements) => {
    await rig.deliver();
    await endedWith('large', elements);
    const [received] = await rig.sink.count(1);
    const body = await rig.verified(received);
    expect(body.data.notice).toContain('262144');
    expect(body.data.result).toBeUndefined();
    expect(received?.body.length).toBeLessThan(10_000);
    expect((await rig.delivery('large', 'delivered')).payload).toBe('thin');
  });
});

describe('a secret of its own', () => {
  it('signs in place of the tenant’s', async () => {
    await rig.deliver();
    await rig.ended('own', { url: rig.sink.url, secret: OWN_SECRET });
    const [received] = await rig.sink.count(1);
    expect((await rig.verified(received, OWN_SECRET)).type).toBe('request.succeeded');
    await expect(rig.verified(received)).rejects.toThrow(/signature/);
  });

  it('is shown nowhere: not in the record, the body, the log of deliveries, the log', async () => {
    await rig.deliver();
    await rig.ended('own', { url: rig.sink.url, secret: OWN_SECRET });
    const [received] = await rig.sink.count(1);
    const { id } = await rig.delivery('own', 'delivered');
    const shown = [
      await rig.cases.get('own'),
      received?.body,
      await rig.cases.webhooks.deliveriesOf('own', null),
      await rig.cases.webhooks.delivery(id, null),
      rig.log,
    ];
    expect(JSON.stringify(shown)).not.toContain(OWN_SECRET);
  });
});

describe('endpoints of a tenant', () => {
  it('are told of each of its requests, and of nobody else’s', async () => {
    await rig.deliver();
    const { id } = await rig.cases.webhooks.addEndpoint({ url: rig.sink.url }, 'acme');
    await rig.ended('theirs', undefined, { tenant: 'acme' });
    await rig.ended('others', undefined);
    await rig.sink.count(1);
    expect(await rig.delivery('theirs', 'delivered')).toMatchObject({ endpoint_id: id, tenant: 'acme' });
    expect(await rig.cases.webhooks.deliveriesOf('others', null)).toEqual([]);
    const secret = (await rig.cases.webhooks.secret('acme')).secret;
    await rig.verified(rig.sink.received[0], secret);
  });

  it('may be for one API key', async () => {
    await rig.deliver();
    await rig.cases.webhooks.addEndpoint({ url: rig.sink.url, key_id: 'key-1' }, 'default');
    await rig.ended('other-key', undefined, { keyId: 'key-2' });
    await rig.ended('this-key', undefined, { keyId: 'key-1' });
    await rig.delivery('this-key', 'delivered');
    expect(rig.sink.received).toHaveLength(1);
  });

  it('and the request’s own webhook are told each by itself', async () => {
    await rig.deliver();
    await rig.cases.webhooks.addEndpoint({ url: rig.sink.url, payload: 'thin' }, 'default');
    await rig.ended('both', `${rig.sink.url}/own`);
    const received = await rig.sink.count(2);
    expect(received.map(({ path }) => path).sort()).toEqual(['/hook', '/hook/own']);
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  });

  it('that are deleted get nothing more, what was pending included', async () => {
    const { id } = await rig.cases.webhooks.addEndpoint({ url: rig.sink.url }, 'default');
    await rig.ended('late', undefined);
    await rig.delivery('late', 'pending');
    await rig.cases.webhooks.removeEndpoint(id, 'default');
    await rig.deliver();
    expect((await rig.delivery('late', 'given_up')).reason).toContain('deleted');
    expect(rig.sink.received).toEqual([]);
  });
});

it('the same end told twice makes one delivery, also when it was delivered in between', async () => {
  await rig.ended('twice', rig.sink.url);
  const first = await rig.delivery('twice', 'pending');
  const record = await stored(rig.store, 'twice');
  if (!record) throw new Error('not stored');
  const again = requestEnded({ store: rig.store, outbox: rig.parts.outbox });
  await again.handle(record);
  await rig.deliver();
  await rig.delivery('twice', 'delivered');
  await again.handle(record);
  expect((await rig.cases.webhooks.deliveriesOf('twice', null)).map(({ id }) => id)).toEqual([first.id]);
  expect(await rig.parts.deliveries.countPending()).toBe(0);
  expect(rig.sink.received).toHaveLength(1);
});

it('another request of the same id, after the first has gone, is told of by itself', async () => {
  await rig.deliver();
  await rig.ended('again', rig.sink.url);
  await rig.sink.count(1);
  await rig.redis.unlink(rig.keys.record('again'));
  await rig.ended('again', rig.sink.url);
  const received = await rig.sink.count(2);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
});

it('outlives the request that it is about', async () => {
  await rig.ended('short', rig.sink.url);
  await rig.delivery('short', 'pending');
  await rig.redis.unlink(rig.keys.record('short'));
  await rig.deliver();
  const { id } = await rig.delivery('short', 'delivered');
  const kept = await rig.redis.pttl(rig.keys.webhook(id));
  expect(kept).toBeGreaterThan(23 * 3_600_000);
  expect(kept).toBeLessThanOrEqual(24 * 3_600_000);
});

it('while it is pending it is kept for longer than the longest pause between two attempts', async () => {
  await rig.ended('waits', rig.sink.url);
  const { id } = await rig.delivery('waits', 'pending');
  expect(await rig.redis.pttl(rig.keys.webhook(id))).toBeGreaterThan(7 * 24 * 3_600_000);
});

it('events that are about no request are put in by themselves', async () => {
  await rig.deliver();
  await rig.cases.webhooks.addEndpoint({ url: rig.sink.url, events: ['batch.completed'] }, 'default');
  const event = {
    ...{ type: 'batch.completed' as const, tenant: 'default', keyId: null, subject: 'batch_1', nonce: 'n' },
    ...{ traceId: 'b'.repeat(32), at: Date.parse('2026-01-01T00:00:00Z') },
    data: async () => ({ batch: { id: 'batch_1' } }),
  };
  const [id] = await rig.parts.outbox.enqueueEvent(event);
  const body = await rig.verified((await rig.sink.count(1))[0]);
  expect(body).toEqual({
    type: 'batch.completed',
    timestamp: '2026-01-01T00:00:00.000Z',
    data: { batch: { id: 'batch_1' } },
  });
  expect((await rig.delivery('batch_1', 'delivered')).id).toBe(id);
});
