/** Webhooks with the real processes: a request through API and worker to a receiver, and a worker killed on the way. */
import type { WebhookDelivery } from '@remuda/schemas';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../integration/requests/rig.js';
import { Fleet, type FleetProcess } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';
import { WebhookSink } from '../support/webhook-sink.js';

let fleet: Fleet;
let sink: WebhookSink;
let first: FleetProcess;

beforeAll(async () => {
  sink = await WebhookSink.start();
  const env = {
    REMUDA_WEBHOOK_ALLOW: '127.0.0.1',
    REMUDA_WORKER_LOCK_MS: '1000',
    REMUDA_WORKER_MODELS: 'identity-4',
    REMUDA_WORKER_WEBHOOK_SCHEDULE_S: '0,0.1,0.1',
  };
  fleet = await Fleet.start({ models: await testModels(), workers: 0, env });
  first = await fleet.addWorker();
}, 120_000);
afterAll(async () => {
  await fleet?.stop();
  await sink?.stop();
});

const INPUTS = { inputs: { x: [[1, 2, 3, 4]] } };

async function deliveriesOf(requestId: string): Promise<WebhookDelivery[]> {
  const { body } = await fleet.api.get<{ deliveries: WebhookDelivery[] }>(
    `/v1/requests/${requestId}/webhooks`,
  );
  return body.deliveries;
}

async function untilDelivered(requestId: string): Promise<void> {
  await until(`${requestId} is delivered`, async () => {
    const found = await deliveriesOf(requestId);
    return found.length > 0 && found.every(({ state }) => state === 'delivered');
  });
}

it('a request that ended is told, with its result, and its trace leads from the 202 to the webhook', async () => {
  const { body } = await fleet.api.submit('identity-4', { ...INPUTS, webhook: sink.url });
  await untilDelivered(body.request_id);
  const [received] = sink.received;
  const { body: signing } = await fleet.api.get<{ secret: string }>('/v1/webhooks/secret');
  const message = new Webhook(signing.secret).verify(
    received?.body ?? '',
    received?.headers as Record<string, string>,
  ) as { data: { result: { outputs: { y: { data: unknown } } } } };
  expect(Object.values(message.data.result.outputs)[0]).toMatchObject({ shape: [1, 4] });
  expect(received?.headers.traceparent).toContain(body.trace_id);
  await expect
    .poll(() => fleet.logged('delivered').filter(({ by }) => by === 'webhook'))
    .toMatchObject([{ trace_id: body.trace_id, request_id: body.request_id }]);
});

it('a worker that is killed after the receiver has it, before it is written down, is replaced: the same id again', async () => {
  const before = sink.received.length;
  sink.answer((response) => {
    first.child.kill('SIGKILL');
    response.writeHead(200).end();
  });
  const { body } = await fleet.api.submit('identity-4', { ...INPUTS, webhook: sink.url });
  await first.ended;
  await fleet.addWorker();
  const received = (await sink.count(before + 2)).slice(before);
  await untilDelivered(body.request_id);
  expect(received[1]?.headers['webhook-id']).toBe(received[0]?.headers['webhook-id']);
  expect(received[1]?.body).toBe(received[0]?.body);
});
