import { expect, it } from 'vitest';
import { KeyedTurns, TurnQueue } from './turn-queue.js';

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

it('turns of one key are taken in order, those of others do not wait, and a failure frees the key', async () => {
  const turns = new KeyedTurns();
  const log: string[] = [];
  let free: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    free = resolve;
  });
  const first = turns.take('a', async () => {
    await held;
    log.push('a1');
    throw new Error('a1 failed');
  });
  const second = turns.take('a', async () => log.push('a2'));
  await turns.take('b', async () => log.push('b1'));
  free();
  await expect(first).rejects.toThrow('a1 failed');
  await second;
  await turns.take('a', async () => log.push('a3'));
  expect(log).toEqual(['b1', 'a1', 'a2', 'a3']);
});
