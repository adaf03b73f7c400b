/** Where webhooks may go: a name is resolved and judged for the very connection that is made. */
import { systemClock } from '@remuda/core/lifecycle/clock';
import { parseAllowed } from '@remuda/core/webhooks/address-rules';
import type { ResolvedAddress } from '@remuda/core/webhooks/connect-lookup';
import { type Sent, WebhookSender } from '@remuda/core/webhooks/send-webhook';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebhookSink } from '../../support/webhook-sink.js';

let sink: WebhookSink;
let asked: string[];
beforeEach(async () => {
  sink = await WebhookSink.start();
  asked = [];
});
afterEach(() => sink.stop());

interface World {
  allow?: string;
  /** What the name resolves to, one answer after the other; the last one stays. */
  answers?: string[][];
}

function senderOf({ allow = '', answers = [] }: World): WebhookSender {
  return new WebhookSender({
    ...{ allowed: parseAllowed(allow), clock: systemClock, timeoutMs: 30_000 },
    resolve: async (host): Promise<ResolvedAddress[]> => {
      asked.push(host);
      const addresses = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
  });
}

function send(sender: WebhookSender, url: string): Promise<Sent> {
  return sender.send({ url, headers: {}, body: '{}' });
}

describe('a name', () => {
  it.each([
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '::1',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
    'fe80::1%lo',
    'fd00:ec2::254',
  ])('that resolves to %s is refused when it is connected', async (address) => {
    const sent = await send(senderOf({ answers: [[address]] }), `http://name.example:${sink.port}/`);
    expect(sent).toMatchObject({ outcome: 'address_refused', status: null });
    expect(sent.error).toContain(address);
    expect(asked).toEqual(['name.example']);
    expect(sink.received).toEqual([]);
  });

  it('is refused over TLS too', async () => {
    const sent = await send(senderOf({ answers: [['127.0.0.1']] }), `https://name.example:${sink.port}/`);
    expect(sent.outcome).toBe('address_refused');
  });

  it('is resolved once for a connection, so that a second answer is never used', async () => {
    const sender = senderOf({ allow: '127.0.0.1', answers: [['127.0.0.1'], ['10.0.0.1']] });
    expect((await send(sender, `http://name.example:${sink.port}/`)).outcome).toBe('delivered');
    expect(asked).toEqual(['name.example']);
  });

  it('is judged anew for the next connection: it may have changed its mind', async () => {
    const sender = senderOf({ allow: '127.0.0.1', answers: [['127.0.0.1'], ['127.0.0.2']] });
    const url = `http://name.example:${sink.port}/`;
    expect((await send(sender, url)).outcome).toBe('delivered');
    expect((await send(sender, url)).outcome).toBe('address_refused');
    expect(sink.received).toHaveLength(1);
  });

  it('with several addresses is connected only where it may be', async () => {
    const sender = senderOf({ allow: '127.0.0.1', answers: [['10.0.0.1', '::1', '127.0.0.1']] });
    expect((await send(sender, `http://name.example:${sink.port}/`)).outcome).toBe('delivered');
  });

  it('that is allowed may lead anywhere', async () => {
    const sender = senderOf({ allow: 'name.example', answers: [['127.0.0.1']] });
    expect((await send(sender, `http://name.example:${sink.port}/`)).outcome).toBe('delivered');
  });

  it('that does not resolve is a failed connection', async () => {
    const sender = new WebhookSender({
      ...{ allowed: parseAllowed(''), clock: systemClock },
      resolve: () => Promise.reject(new Error('queryA ENOTFOUND name.example')),
    });
    const sent = await send(sender, 'https://name.example/');
    expect(sent).toMatchObject({ outcome: 'connection', error: 'queryA ENOTFOUND name.example' });
  });
});

it.each(['127.0.0.1', 'localhost', '[::1]', '2130706433'])(
  'the address %s that stands in a URL is refused without a connection, also where it was let in before',
  async (host) => {
    const sent = await send(senderOf({}), `http://${host}:${sink.port}/`);
    expect(sent.outcome).toBe('address_refused');
    expect(sink.received).toEqual([]);
    expect(asked).toEqual([]);
  },
);

it('an attempt that is cut off ends at once, also while it connects', async () => {
  let resolving = (): void => {};
  const reached = new Promise<void>((resolve) => {
    resolving = resolve;
  });
  const sender = new WebhookSender({
    ...{ allowed: parseAllowed(''), clock: systemClock },
    resolve: () => {
      resolving();
      return new Promise(() => {});
    },
  });
  const sent = send(sender, 'https://name.example/');
  await reached;
  sender.cutAll();
  expect((await sent).outcome).toBe('cut_off');
});
