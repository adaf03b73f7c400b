import { expect, it } from 'vitest';
import { TurnQueue } from './turn-queue.js';

it('does one piece at a time, the most wanted first, alike ones in order; a failure frees the turn', async () => {
  const turns = new TurnQueue();
  const log: string[] = [];
  const wanted: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 };
  const take = (name: string): Promise<void> =>
    turns.take(
      () => wanted[name] as number,
      async () => {
        log.push(`+${name}`);
        await new Promise((resolve) => setImmediate(resolve));
        log.push(`-${name}`);
        if (name === 'd') throw new Error('d failed');
      },
    );
  const all = Promise.allSettled(['a', 'b', 'c', 'd'].map(take));
  wanted.d = 2;
  const outcomes = await all;
  expect(log.join(' ')).toBe('+a -a +d -d +b -b +c -c');
  expect(outcomes.map((outcome) => outcome.status)).toEqual([
    'fulfilled',
    'fulfilled',
    'fulfilled',
    'rejected',
  ]);
});
