/** What is known of the depth of a queue, by the age of the last answer. */
import { expect, it } from 'vitest';
import type { Clock } from '../lifecycle/clock.js';
import type { JobQueue } from './job-queue.js';
import { QueueDepths } from './queue-depths.js';

const partition = { model: 'm', deviceClass: 'cpu', lane: 'interactive' } as const;

function depthsOf(waiting: number) {
  const at = { now: 1_000_000, waiting };
  const queue = { depth: async () => ({ waiting: at.waiting, active: 0 }) } as JobQueue;
  const clock = { now: () => at.now } as Clock;
  return { at, depths: new QueueDepths({ queues: { of: () => queue }, clock }) };
}

it('is the last answer and what was let in since', async () => {
  const { depths } = depthsOf(3);
  await depths.first(partition);
  depths.count(partition);
  expect(depths.peek(partition).waiting).toBe(4);
});

it('is asked for anew before it is relied upon, where the last answer is of a burst that is long over', async () => {
  const { at, depths } = depthsOf(50_000);
  await depths.first(partition);
  at.now += 60_000;
  at.waiting = 0;
  expect(depths.peek(partition)).toMatchObject({ waiting: 0, askedAt: 0 });
  expect(await depths.first(partition)).toMatchObject({ waiting: 0, askedAt: at.now });
});
