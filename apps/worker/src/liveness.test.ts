import { expect, it } from 'vitest';
import { stallReason } from './liveness.js';

const idle = { subject: 'm', inHand: 0, waiting: 0, lastProgressAt: 0 };

it('a worker with nothing to do is healthy, however long it has been quiet', () => {
  expect(stallReason([idle], 1e9, 60_000)).toBeNull();
});

it('a worker with a backlog that makes progress is healthy', () => {
  expect(
    stallReason([{ ...idle, inHand: 9, waiting: 9, lastProgressAt: 50_000 }], 60_000, 60_000),
  ).toBeNull();
});

it('items in hand and no batch back for the stall time: unhealthy, naming the model', () => {
  const reason = stallReason([idle, { ...idle, subject: 'slow@1 on cpu', inHand: 3 }], 61_000, 60_000);
  expect(reason).toBe('slow@1 on cpu: 3 items in hand and no batch has come back for 61 s');
});

it('jobs in the queue and none taken for the stall time: unhealthy, naming the queue', () => {
  expect(stallReason([{ ...idle, subject: 'm (cpu, bulk)', waiting: 2 }], 61_000, 60_000)).toBe(
    'm (cpu, bulk): 2 jobs wait and none has been taken for 61 s',
  );
});
