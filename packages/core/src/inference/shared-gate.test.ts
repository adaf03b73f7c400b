import { expect, it } from 'vitest';
import { SharedGate } from './shared-gate.js';

it('lets shared work in together and exclusive work in alone, exclusive first', async () => {
  const gate = new SharedGate();
  const inside = new Set<string>();
  const seen: string[] = [];
  const releases = new Map<string, () => void>();
  const work = (name: string) => () =>
    new Promise<void>((resolve) => {
      inside.add(name);
      seen.push([...inside].join('+'));
      releases.set(name, () => {
        inside.delete(name);
        resolve();
      });
    });
  const turn = async (name: string): Promise<void> => {
    releases.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const all = [
    gate.shared(work('a')),
    gate.shared(work('b')),
    gate.exclusive(work('X')),
    gate.shared(work('c')),
    gate.exclusive(work('Y')),
  ];
  await turn('a');
  expect(inside).toEqual(new Set(['b']));
  await turn('b');
  await turn('X');
  await turn('Y');
  await turn('c');
  await Promise.all(all);
  expect(seen).toEqual(['a', 'a+b', 'X', 'Y', 'c']);
});
