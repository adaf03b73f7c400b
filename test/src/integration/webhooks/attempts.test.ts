/** What comes of an attempt: delivered, tried again, or given up, by what the receiver answers. */
import { OverdueSweep } from '@remuda/core/webhooks/overdue-sweep';
import type { WebhookAttempt } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebhookSink } from '../../support/webhook-sink.js';
import { until } from '../requests/rig.js';
import { AT_ONCE, type Rig, setup } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

/** The schedule of a delivery that is not tried a second time while the test runs. */
const ONE_NOW = [0, 24 * 3_600_000];

function brief({ outcome, status }: WebhookAttempt): string {
  return status === null ? outcome : `${outcome} ${status}`;
}

describe('an answer other than 2xx', () => {
  it('is tried again, with the same id and the same bytes, and a time of its own', async () => {
    rig.sink.answer(500, 404, 503);
    await rig.deliver();
    await rig.ended('third', rig.sink.url);
    const received = await rig.sink.count(4);
    const delivery = await rig.delivery('third', 'delivered');
    expect(delivery.attempts.map(brief)).toEqual(['answer 500', 'answer 404', 'answer 503', 'delivered 200']);
    expect(new Set(received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([delivery.id]));
    expect(new Set(received.map(({ body }) => body)).size).toBe(1);
    for (const one of received) await rig.verified(one);
    expect(rig.log.filter(({ event }) => event === 'webhook_failed')).toHaveLength(3);
  });

  it('is tried ten times, and then given up, which the log says', async () => {
    rig.sink.otherwise = 500;
    await rig.deliver({ gates: { failures: 100 } });
    await rig.ended('never', rig.sink.url);
    const delivery = await rig.delivery('never', 'given_up');
    expect(delivery.attempts).toHaveLength(10);
    expect(rig.sink.received).toHaveLength(10);
    expect(delivery).toMatchObject({ reason: '10 attempts have failed', next_attempt_at: null });
    await expect
      .poll(() => rig.log.find(({ event }) => event === 'webhook_given_up'))
      .toMatchObject({ request_id: 'never', trace_id: 'a'.repeat(32) });
  });

  it('of 3xx is not followed', async () => {
    const elsewhere = await WebhookSink.start();
    try {
      rig.sink.answer((response) => void response.writeHead(302, { location: elsewhere.url }).end());
      await rig.deliver();
      await rig.ended('moved', rig.sink.url);
      const { attempts } = await rig.delivery('moved', 'delivered');
      expect(attempts.map(brief)).toEqual(['redirect 302', 'delivered 200']);
      expect(elsewhere.received).toEqual([]);
    } finally {
      await elsewhere.stop();
    }
  });

  it.each([429, 503])('of %d with Retry-After is not tried before that', async (status) => {
    rig.sink.answer((response) => void response.writeHead(status, { 'retry-after': '3600' }).end());
    await rig.deliver();
    await rig.ended('busy', rig.sink.url);
    await rig.sink.count(1);
    await until(
      'the attempt is written down',
      async () => (await rig.delivery('busy')).attempts.length === 1,
    );
    const { attempts, next_attempt_at } = await rig.delivery('busy', 'pending');
    const begun = Date.parse((attempts[0] as WebhookAttempt).at);
    expect(Date.parse(next_attempt_at as string) - begun).toBeGreaterThanOrEqual(3_600_000);
  });

  it('of 410 gives up at once, and disables the endpoint until somebody enables it', async () => {
    rig.sink.answer(410);
    await rig.deliver();
    const { id } = await rig.cases.webhooks.addEndpoint({ url: rig.sink.url }, 'default');
    await rig.ended('first', undefined);
    expect((await rig.delivery('first', 'given_up')).attempts.map(brief)).toEqual(['gone 410']);
    expect((await rig.cases.webhooks.endpoint(id, 'default')).disabled?.reason).toContain('410');
    await rig.ended('second', undefined);
    await rig.cases.webhooks.enableEndpoint(id, 'default');
    await rig.ended('third', undefined);
    await rig.delivery('third', 'delivered');
    expect(rig.sink.received).toHaveLength(2);
    expect(await rig.cases.webhooks.deliveriesOf('second', null)).toEqual([]);
  });
});

describe('no answer', () => {
  it('because the connection was reset is tried again', async () => {
    rig.sink.answer((response) => void response.socket?.resetAndDestroy());
    await rig.deliver();
    await rig.ended('reset', rig.sink.url);
    const { attempts } = await rig.delivery('reset', 'delivered');
    expect(attempts.map(brief)).toEqual(['connection', 'delivered 200']);
  });

  it('because nobody listens is tried again', async () => {
    const gone = await WebhookSink.start();
    const { url } = gone;
    await gone.stop();
    await rig.deliver({ schedule: ONE_NOW });
    await rig.ended('nobody', url);
    await until(
      'the attempt is written down',
      async () => (await rig.delivery('nobody')).attempts.length === 1,
    );
    const [attempt] = (await rig.delivery('nobody', 'pending')).attempts as [WebhookAttempt];
    expect(attempt).toMatchObject({ outcome: 'connection', status: null });
    expect(attempt.error).toMatch(/ECONNREFUSED/);
  });

  it('in time is a time-out', async () => {
    rig.sink.otherwise = rig.sink.hold;
    await rig.deliver({ schedule: ONE_NOW, sending: { timeoutMs: 50 } });
    await rig.ended('slow', rig.sink.url);
    await until(
      'the attempt is written down',
      async () => (await rig.delivery('slow')).attempts.length === 1,
    );
    expect((await rig.delivery('slow', 'pending')).attempts.map(brief)).toEqual(['timeout']);
  });

  it('but its status is an answer, however long its body goes on', async () => {
    rig.sink.answer((response) => void response.writeHead(200).write('and'));
    await rig.deliver();
    await rig.ended('endless', rig.sink.url);
    expect((await rig.delivery('endless', 'delivered')).attempts.map(brief)).toEqual(['delivered 200']);
  });

  it('but a flood of body is not read to its end', async () => {
    let written = 0;
    rig.sink.answer((response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1024);
      const more = (): void => {
        while (!response.destroyed && written < 256 * 1024 * 1024) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
      };
      more();
    });
    await rig.deliver();
    await rig.ended('flood', rig.sink.url);
    await rig.delivery('flood', 'delivered');
    expect(written).toBeLessThan(128 * 1024 * 1024);
  });
});

describe('a delivery once more', () => {
  it('begins a new round at once, with the same id and bytes', async () => {
    await rig.deliver();
    await rig.ended('more', rig.sink.url);
    const { id } = await rig.delivery('more', 'delivered');
    await rig.cases.webhooks.redeliver(id, null);
    const [first, second] = await rig.sink.count(2);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.body).toBe(first?.body);
    await until('it is delivered twice', async () => (await rig.delivery('more')).attempts.length === 2);
    expect((await rig.delivery('more', 'delivered')).attempts_made).toBe(1);
  });

  it('is taken up although its next attempt is hours away', async () => {
    rig.sink.answer(500);
    await rig.deliver({ schedule: ONE_NOW });
    await rig.ended('far', rig.sink.url);
    await until('the attempt is written down', async () => (await rig.delivery('far')).attempts.length === 1);
    const { id } = await rig.delivery('far');
    await until('its job is put off', async () => {
      await rig.cases.webhooks.redeliver(id, null);
      return rig.sink.received.length > 1;
    });
    await rig.delivery('far', 'delivered');
  });

  it('is another tenant’s to ask for only where that may see it', async () => {
    await rig.ended('mine', rig.sink.url, { tenant: 'acme' });
    const { id } = await rig.delivery('mine');
    await expect(rig.cases.webhooks.redeliver(id, 'other')).rejects.toMatchObject({
      code: 'webhook_not_found',
    });
    await expect(rig.cases.webhooks.delivery(id, 'other')).rejects.toMatchObject({
      code: 'webhook_not_found',
    });
    expect(await rig.cases.webhooks.deliveriesOf('mine', 'other')).toEqual([]);
    expect((await rig.cases.webhooks.delivery(id, 'acme')).body).toContain('"mine"');
  });
});

describe('a worker that stops', () => {
  it('cuts its attempt off, which is not counted, and another makes it', async () => {
    rig.sink.answer(rig.sink.hold);
    const first = await rig.deliver();
    await rig.ended('cut', rig.sink.url);
    await rig.sink.count(1);
    await first.stop();
    expect((await rig.delivery('cut', 'pending')).attempts).toEqual([]);
    await rig.deliver();
    expect((await rig.delivery('cut', 'delivered')).attempts.map(brief)).toEqual(['delivered 200']);
    const [before, after] = await rig.sink.count(2);
    expect(after?.headers['webhook-id']).toBe(before?.headers['webhook-id']);
  });
});

it('a delivery whose job was lost is put back', async () => {
  await rig.ended('lost', rig.sink.url);
  const { id } = await rig.delivery('lost', 'pending');
  const jobs = await rig.redis.keys(`${rig.keys.space.prefix}:queue:{webhooks}:*`);
  await rig.redis.unlink(...jobs);
  await rig.deliver();
  const { deliveries, queue } = rig.parts;
  let now = Date.now();
  const sweep = new OverdueSweep({
    ...{ deliveries, queue, onError: () => {} },
    clock: { now: () => now, after: () => () => {} },
  });
  await sweep.turn();
  expect((await rig.parts.deliveries.read(id))?.state).toBe('pending');
  now += 61_000;
  await sweep.turn();
  await rig.delivery('lost', 'delivered');
});

it('the metrics count attempts and deliveries, and show what is pending', async () => {
  rig.sink.answer(500);
  await rig.deliver({ schedule: AT_ONCE });
  await rig.ended('counted', rig.sink.url);
  await rig.delivery('counted', 'delivered');
  await rig.parts.deliveries.create({
    ...{ id: 'msg_other', body: '', secret: null, type: 'request.failed', subject: 's', tenant: 't' },
    ...{ url: rig.sink.url, endpointId: null, payload: 'thin', traceId: 't', createdAt: Date.now() },
  });
  const delivered = 'remuda_webhook_deliveries_total{outcome="delivered"} 1';
  await expect.poll(() => rig.metrics.text()).toContain(delivered);
  const text = await rig.metrics.text();
  expect(text).toContain('remuda_webhook_attempts_total{outcome="answer"} 1');
  expect(text).toContain('remuda_webhook_attempts_total{outcome="delivered"} 1');
  expect(text).toContain('remuda_webhook_outbox 1');
  expect(text).toContain('remuda_webhook_breakers_open 0');
});
