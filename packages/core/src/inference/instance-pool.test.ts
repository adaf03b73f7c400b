import { afterAll, beforeAll, expect, test } from 'vitest';
import { BULK, INTERACTIVE } from '../fairness/lane-share.js';
import type { AssembledBatch } from './batch-assembly.js';
import { BufferPool } from './buffer-pool.js';
import { InstancePool } from './instance-pool.js';
import { InstanceThreads } from './instance-threads.js';
import { row } from './runner-setup.fixture.js';
import { makeModels, sourceOf } from './test-models.fixture.js';

const buffers = new BufferPool();
let pool: InstancePool;
beforeAll(async () => {
  const source = sourceOf(await makeModels(), 'identity-fp32', { instances: 1 });
  pool = new InstancePool({
    source,
    buffers,
    threads: new InstanceThreads(),
    onFatal: (error) => {
      throw error;
    },
  });
  await pool.load();
});
afterAll(() => pool.unload());

const begin = (name: string, begun: string[], lane: typeof BULK | typeof INTERACTIVE) =>
  pool.run(
    () => batch(1),
    context,
    () => begun.push(name),
    lane,
  );

test('a run that somebody waits for goes before those of chunks, which keep their share of the rows', async () => {
  const begun: string[] = [];
  const chunks = Array.from({ length: 4 }, (_, n) => begin(`chunk ${n}`, begun, BULK));
  const others = Array.from({ length: 30 }, (_, n) => begin(`other ${n}`, begun, INTERACTIVE));
  await Promise.all([...chunks, ...others]);
  // The first was under way before anything else came.
  expect(begun.slice(0, 2)).toEqual(['chunk 0', 'other 0']);
  const places = [1, 2, 3].map((n) => begun.indexOf(`chunk ${n}`));
  // A tenth: one at once, for what it is owed already, then one of ten.
  expect(places).toEqual([2, 12, 22]);
});

const context = { batchId: 'bat', parameters: {} };
const batch = (value: number): AssembledBatch => ({ rows: 1, inputs: row(value, 0, 0, 0), buffers: [] });

test('one run is assembled ahead of those that are under way, the others when their turn is near', async () => {
  const made: number[] = [];
  const begun: number[] = [];
  const answers = [0, 1, 2, 3].map((n) =>
    pool.run(
      () => {
        made.push(n);
        return batch(n);
      },
      context,
      () => begun.push(n),
    ),
  );
  expect({ made, begun }).toEqual({ made: [0, 1], begun: [0] });
  for (const answer of answers) expect(await answer).toMatchObject({ ok: true });
  expect({ made, begun }).toEqual({ made: [0, 1, 2, 3], begun: [0, 1, 2, 3] });
});

test('what has nothing left to run, or cannot be assembled, leaves the line to the next', async () => {
  const wrong = new Error('the pieces do not fit');
  const refuse = () => {
    throw wrong;
  };
  const never = () => expect.fail('nothing of it may begin');
  const answers = [
    pool.run(
      () => batch(1),
      context,
      () => {},
    ),
    pool.run(() => undefined, context, never),
    pool.run(refuse, context, never),
    pool.run(
      () => batch(2),
      context,
      () => {},
    ),
  ];
  const ends = await Promise.allSettled(answers);
  expect(ends).toMatchObject([
    { value: { ok: true } },
    { value: undefined },
    { reason: wrong },
    { value: { ok: true } },
  ]);
});

test('a batch that waited for longer than it is good for is made anew before it begins, or not run at all', async () => {
  const made: string[] = [];
  const begun: string[] = [];
  /** Good for no time at all where it is made ahead, behind another. */
  const make = (name: string, again: AssembledBatch | undefined) => () => {
    made.push(name);
    return made.filter((other) => other === name).length > 1
      ? again
      : { ...batch(1), goodUntil: performance.now() };
  };
  const first = pool.run(
    () => batch(0),
    context,
    () => {},
  );
  const remade = pool.run(make('remade', batch(2)), context, () => begun.push('remade'));
  const dropped = pool.run(make('dropped', undefined), context, () => begun.push('dropped'));
  expect(await first).toMatchObject({ ok: true });
  expect(await remade).toMatchObject({ ok: true });
  expect(await dropped).toBeUndefined();
  expect({ made, begun }).toEqual({ made: ['remade', 'remade', 'dropped', 'dropped'], begun: ['remade'] });
});
