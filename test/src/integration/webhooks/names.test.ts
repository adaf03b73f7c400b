/** Names asked of a real name server: what it says is judged before it is connected. */
import { systemClock } from '@remuda/core/lifecycle/clock';
import { parseAllowed } from '@remuda/core/webhooks/address-rules';
import { askDns } from '@remuda/core/webhooks/connect-lookup';
import { WebhookSender } from '@remuda/core/webhooks/send-webhook';
import { afterEach, expect, it } from 'vitest';
import { type NameAnswer, NameServer } from '../../support/name-server.js';
import { WebhookSink } from '../../support/webhook-sink.js';

const LOOPBACK_6 = [...Array.from({ length: 15 }, () => 0), 1];

let server: NameServer | undefined;
let sink: WebhookSink | undefined;
afterEach(async () => {
  await server?.stop();
  await sink?.stop();
  sink = undefined;
});

async function ask(answer: NameAnswer): ReturnType<typeof askDns> {
  server = await NameServer.start(answer);
  return askDns('sink.example', [server.address]);
}

it('both families are asked for', async () => {
  const found = await ask((type) => (type === 'A' ? [[10, 0, 0, 1]] : [LOOPBACK_6]));
  expect(found).toEqual([
    { address: '10.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);
});

it('a family that is not there, or of which nothing is heard, does not hide the other', async () => {
  const silent = await ask((type) => (type === 'A' ? [[8, 8, 8, 8]] : null));
  expect(silent).toEqual([{ address: '8.8.8.8', family: 4 }]);
  await server?.stop();
  const none = await ask((type) => (type === 'A' ? [] : [LOOPBACK_6]));
  expect(none).toEqual([{ address: '::1', family: 6 }]);
});

it('a name that leads to this machine is refused at the connect, whatever family it hides in', async () => {
  sink = await WebhookSink.start();
  server = await NameServer.start((type) => (type === 'A' ? [[127, 0, 0, 1]] : [LOOPBACK_6]));
  const { address } = server;
  const sender = new WebhookSender({
    ...{ allowed: parseAllowed(''), clock: systemClock },
    resolve: (host) => askDns(host, [address]),
  });
  const sent = await sender.send({ url: `http://sink.example:${sink.port}/`, headers: {}, body: '{}' });
  expect(sent.outcome).toBe('address_refused');
  expect(sent.error).toMatch(/127\.0\.0\.1.*::1/);
  expect(server.asked.sort()).toEqual(['A sink.example', 'AAAA sink.example']);
  expect(sink.received).toEqual([]);
});
