/** One host does not hold up another: dead, slow, or many deliveries to it. Held by a gate, not by time. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SinkAnswer, WebhookSink } from '../../support/webhook-sink.js';
import { until } from '../requests/rig.js';
import { type Rig, setup } from './rig.js';

let rig: Rig;
let dead: WebhookSink;
beforeEach(async () => {
  rig = await setup();
  dead = await WebhookSink.start();
  dead.otherwise = dead.hold;
});
afterEach(async () => {
  dead.release();
  await rig.close();
  await dead.stop();
});

async function endMany(count: number, url: string, name: string): Promise<void> {
  for (let at = 0; at < count; at++) await rig.ended(`${name}-${at}`, url);
}

const CUT: SinkAnswer = (response) => void response.socket?.resetAndDestroy();
/** More attempts than a slow machine can make while a test looks. */
const FOR_LONG = Array.from({ length: 10_000 }, () => 0);

describe('a host that takes calls and never answers', () => {
  it('has its few attempts, and those to another are delivered while it hangs', async () => {
    await endMany(30, dead.url, 'dead');
    await endMany(10, rig.sink.url, 'good');
    // Fewer in hand than there are deliveries to the dead host: it could fill them all.
    await rig.deliver({ concurrency: 6, gates: { atOnce: 2 } });
    await rig.sink.count(10);
    expect(dead.held.length).toBe(2);
    expect(dead.received.length).toBe(2);
  });
});

describe('a host that cuts every connection', () => {
  it('gets no further attempts after the fifth failure, and being put off is not an attempt', async () => {
    dead.otherwise = CUT;
    await endMany(12, dead.url, 'dead');
    await rig.deliver({ gates: { pauseMs: 600_000, maxPauseMs: 600_000 } });
    await until('its breaker is open', async () => (await rig.metrics.text()).includes('breakers_open 1'));
    await endMany(5, rig.sink.url, 'good');
    await rig.sink.count(5);
    await until('all of them were put off', async () => {
      const text = await rig.metrics.text();
      const [, count = 0] = /put_off_total\{reason="breaker"\} (\d+)/.exec(text) ?? [];
      return Number(count) >= 12;
    });
    const deliveries = await Promise.all(Array.from({ length: 12 }, (_, at) => rig.delivery(`dead-${at}`)));
    const made = deliveries.reduce((sum, { attempts }) => sum + attempts.length, 0);
    expect(made).toBe(dead.received.length);
    expect(made).toBeLessThan(5 + 8);
    expect(deliveries.every(({ state }) => state === 'pending')).toBe(true);
  });

  it('gets everything once it is back', async () => {
    dead.otherwise = CUT;
    await endMany(12, dead.url, 'dead');
    await rig.deliver({ schedule: FOR_LONG, gates: { pauseMs: 50, maxPauseMs: 50 } });
    await until('its breaker is open', async () => (await rig.metrics.text()).includes('breakers_open 1'));
    dead.release();
    for (let at = 0; at < 12; at++) await rig.delivery(`dead-${at}`, 'delivered');
  });
});

it('a host that answers what it dislikes is not taken for dead', async () => {
  rig.sink.otherwise = 400;
  await endMany(8, rig.sink.url, 'disliked');
  await rig.deliver({ gates: { failures: 1, pauseMs: 600_000, maxPauseMs: 600_000 } });
  for (let at = 0; at < 8; at++) await rig.delivery(`disliked-${at}`, 'given_up');
  expect(rig.sink.received).toHaveLength(80);
});
