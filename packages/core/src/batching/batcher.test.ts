import { describe, expect, it } from 'vitest';
import type { Clock } from '../lifecycle/clock.js';
import type { PolicyLimits, Waiting } from './batch-policy.js';
import { Batcher, type BatcherOptions } from './batcher.js';

/** A clock that stands until it is told to move. */
class ManualClock implements Clock {
  #now = 0;
  #timers: { at: number; callback(): void }[] = [];
  now(): number {
    return this.#now;
  }
  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }
  advance(ms: number): void {
    this.#now += ms;
    const due = this.#timers.filter((timer) => timer.at <= this.#now);
    this.#timers = this.#timers.filter((timer) => timer.at > this.#now);
    for (const timer of due) timer.callback();
  }
}

interface Entry extends Waiting {
  name: string;
}

function setup(
  limits: Partial<PolicyLimits> = {},
  options: Pick<BatcherOptions<Entry, string>, 'bulkShare' | 'refillMs'> = {},
) {
  const clock = new ManualClock();
  const batches: {
    names: string[];
    answer(outcomes?: string[]): Promise<void>;
    fail(error: Error): Promise<void>;
  }[] = [];
  const batcher = new Batcher<Entry, string>({
    limits: { maxRows: 4, maxDelayMs: 10, instances: 1, prefetch: 0, ...limits },
    clock,
    ...options,
    defer: (pump) => queueMicrotask(pump),
    dispatch: (entries) =>
      new Promise((resolve, reject) => {
        const names = entries.map((entry) => entry.name);
        batches.push({
          names,
          answer: async (outcomes = names.map((name) => `done ${name}`)) => {
            resolve(outcomes);
            await settled();
          },
          fail: async (error) => {
            reject(error);
            await settled();
          },
        });
      }),
  });
  const add = (name: string, change: Partial<Entry> = {}): Promise<string> =>
    batcher.add({
      name,
      rows: 1,
      group: 'g',
      laneRank: 0,
      tenant: 'ann',
      weight: 1,
      priority: 5,
      deadline: 0,
      acceptedAt: clock.now(),
      arrivedAt: clock.now(),
      ...change,
    });
  return { clock, batches, batcher, add };
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

describe('a batcher', () => {
  it('puts entries that arrive in one turn into one batch and gives each its own outcome', async () => {
    const { batches, add } = setup();
    const results = ['a', 'b', 'c'].map((name) => add(name));
    await settled();
    expect(batches.map((batch) => batch.names)).toEqual([['a', 'b', 'c']]);
    await batches[0]?.answer();
    expect(await Promise.all(results)).toEqual(['done a', 'done b', 'done c']);
  });

  it('forms full batches of each shape when two shapes arrive interleaved', async () => {
    const { batches, add } = setup({ maxRows: 3 });
    for (const name of ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']) void add(name, { group: name[0] as string });
    await settled();
    await batches[0]?.answer();
    expect(batches.map((batch) => batch.names)).toEqual([
      ['a1', 'a2', 'a3'],
      ['b1', 'b2', 'b3'],
    ]);
  });

  it('gathers while the instance is busy and hands a full batch on ahead of time', async () => {
    const { batches, add } = setup({ prefetch: 1 });
    void add('first');
    await settled();
    for (const name of ['a', 'b', 'c']) void add(name);
    await settled();
    expect(batches).toHaveLength(1);
    void add('d');
    await settled();
    expect(batches[1]?.names).toEqual(['a', 'b', 'c', 'd']);
  });

  it('puts several runs into a batch that is handed on while the instance is busy, where it may', async () => {
    const { batches, add } = setup({ maxRows: 2, prefetch: 1, aheadRows: 6 });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) void add(name);
    await settled();
    expect(batches.map((batch) => batch.names)).toEqual([
      ['a', 'b'],
      ['c', 'd', 'e', 'f', 'g', 'h'],
    ]);
    await batches[1]?.answer();
    await batches[0]?.answer();
    expect(batches[2]?.names).toEqual(['i']);
  });

  it('does not wait for more than one run to hand on', async () => {
    const { batches, add } = setup({ maxRows: 2, prefetch: 1, aheadRows: 6 });
    for (const name of ['a', 'b', 'c', 'd']) void add(name);
    await settled();
    expect(batches.map((batch) => batch.names)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('hands on what it has when the oldest has waited max_queue_delay_ms', async () => {
    const { batches, add, clock } = setup({ prefetch: 1 });
    void add('first');
    await settled();
    void add('a');
    await settled();
    clock.advance(9);
    await settled();
    expect(batches).toHaveLength(1);
    clock.advance(1);
    await settled();
    expect(batches[1]?.names).toEqual(['a']);
  });

  it('lets a late urgent entry overtake those that wait', async () => {
    const { batches, add } = setup({ maxRows: 1 });
    void add('running');
    await settled();
    void add('normal');
    void add('urgent', { priority: 0 });
    await settled();
    await batches[0]?.answer();
    expect(batches[1]?.names).toEqual(['urgent']);
  });

  it('drops an entry whose deadline passes while it waits, without running it', async () => {
    const { batches, add, clock } = setup();
    void add('running');
    await settled();
    const late = add('late', { deadline: 20 });
    await settled();
    clock.advance(20);
    expect(await late).toBe('expired');
    await batches[0]?.answer();
    expect(batches).toHaveLength(1);
  });

  it('hands a batch on early for a row that would miss its deadline by waiting, while all instances are busy', async () => {
    const { batches, add } = setup({ prefetch: 1, maxDelayMs: 10 });
    void add('running');
    await settled();
    void add('patient', { deadline: 1_000 });
    await settled();
    expect(batches, 'there is time to gather').toHaveLength(1);
    void add('other group, in a hurry', { group: 'h', deadline: 8 });
    await settled();
    expect(batches.map((batch) => batch.names)).toEqual([['running'], ['other group, in a hurry']]);
  });

  it('counts the wait behind what runs: a row is in a hurry where gathering and that would be too long', async () => {
    const { batches, add } = setup({ prefetch: 1, maxDelayMs: 10 });
    void add('running');
    await settled();
    void add('in time', { deadline: 41, leadMs: 30 });
    await settled();
    expect(batches).toHaveLength(1);
    void add('in a hurry', { deadline: 40, leadMs: 30 });
    await settled();
    expect(batches[1]?.names, 'with all that its batch can hold').toEqual(['in a hurry', 'in time']);
  });

  it('never runs a row at or behind its deadline, and never drops one before it, whatever comes', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      let state = seed;
      const random = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
      };
      const { clock, batches, add } = setup({ prefetch: random(2), maxDelayMs: random(20) });
      const deadlines = new Map<string, number>();
      const dropped: { name: string; at: number }[] = [];
      let answered = 0;
      for (let step = 0; step < 120; step++) {
        const name = `row ${step}`;
        const deadline = random(2) === 0 ? 0 : clock.now() + 1 + random(60);
        deadlines.set(name, deadline || Number.POSITIVE_INFINITY);
        const change = { group: `g${random(3)}`, deadline, leadMs: random(3) * 10, priority: random(3) };
        void add(name, change).then((end) => {
          if (end === 'expired') dropped.push({ name, at: clock.now() });
        });
        const before = batches.length;
        await settled();
        if (random(3) === 0 && answered < batches.length) await batches[answered++]?.answer();
        for (const { names } of batches.slice(before))
          for (const run of names) expect(deadlines.get(run)).toBeGreaterThan(clock.now());
        clock.advance(random(12));
        await settled();
      }
      for (const { name, at } of dropped) expect(deadlines.get(name)).toBeLessThanOrEqual(at);
      expect(dropped.length).toBeGreaterThan(0);
    }
  });

  it('fails an entry that dispatch leaves out, and only that one', async () => {
    const { batches, add } = setup();
    const [a, b] = [add('a'), add('b')];
    await settled();
    const failed = expect(b).rejects.toThrow('answered without this entry');
    await batches[0]?.answer(['done a']);
    expect(await a).toBe('done a');
    await failed;
  });

  it('goes on after a dispatch that threw', async () => {
    const { batches, add } = setup({ maxRows: 1 });
    const a = expect(add('a')).rejects.toThrow('no runner');
    const b = add('b');
    await settled();
    await batches[0]?.fail(new Error('no runner'));
    await a;
    await batches[1]?.answer();
    expect(await b).toBe('done b');
  });

  it('drains: what waits comes back at once, what runs is awaited, nothing new is taken', async () => {
    const { batches, add, batcher } = setup({ maxRows: 1 });
    const running = add('running');
    await settled();
    const waiting = add('waiting');
    let drained = false;
    const done = batcher.drain().then(() => {
      drained = true;
    });
    expect(await waiting).toBe('drained');
    expect(await add('new')).toBe('drained');
    expect(drained).toBe(false);
    await batches[0]?.answer();
    await done;
    expect(await running).toBe('done running');
  });
});

describe('tenants in a batcher', () => {
  const fill = (add: ReturnType<typeof setup>['add'], count: number, change: Partial<Entry> = {}) => {
    for (let at = 0; at < count; at++) void add(`${change.tenant ?? 'ann'} ${at}`, change);
  };

  it('who comes new is in the next batch, however many rows of another are held', async () => {
    const { batches, add } = setup({ maxRows: 4 });
    fill(add, 40);
    await settled();
    void add('new', { tenant: 'bob' });
    await settled();
    await batches[0]?.answer();
    expect(batches[1]?.names).toContain('new');
  });

  it('share by their weights', async () => {
    const { batches, add } = setup({ maxRows: 6 });
    void add('running');
    await settled();
    fill(add, 60, { tenant: 'ann' });
    fill(add, 60, { tenant: 'bob', weight: 2 });
    await settled();
    for (let at = 0; at < 8; at++) await batches[at]?.answer();
    const names = batches.slice(1, 9).flatMap((batch) => batch.names);
    const share = names.filter((name) => name.startsWith('bob')).length / names.length;
    expect(Math.abs(share - 2 / 3)).toBeLessThan(0.05);
  });

  it('let no row of theirs overtake for ever: a last one among urgent ones has its turn after nine batches', async () => {
    const { batches, add } = setup({ maxRows: 2 });
    void add('running', { priority: 0 });
    await settled();
    fill(add, 4, { priority: 5 });
    void add('last', { priority: 9 });
    await settled();
    let at = 0;
    for (; !batches[at]?.names.includes('last'); at++) {
      void add(`urgent ${at}a`, { priority: 0 });
      void add(`urgent ${at}b`, { priority: 0 });
      await settled();
      await batches[at]?.answer();
    }
    expect(at).toBeGreaterThan(3);
    expect(at).toBeLessThanOrEqual(1 + 2 + 9 + 1);
  });

  it('bring a row with a near deadline forward among their own, and not before others', async () => {
    const { batches, add } = setup({ maxRows: 1 });
    void add('running');
    await settled();
    for (const name of ['ann 1', 'ann 2']) void add(name, { tenant: 'ann', deadline: 90_000 });
    for (const name of ['bob 1', 'bob 2']) void add(name, { tenant: 'bob' });
    void add('ann, soon', { tenant: 'ann', deadline: 500 });
    await settled();
    for (let at = 0; at < 6; at++) await batches[at]?.answer();
    expect(batches.slice(1).flatMap((batch) => batch.names)).toEqual([
      'ann, soon',
      'bob 1',
      'ann 1',
      'bob 2',
      'ann 2',
    ]);
  });
});

describe('the lanes of a batcher', () => {
  it('share the batches: interactive first, bulk its share of the rows, and each fills what the other leaves', async () => {
    const { batches, add } = setup({ maxRows: 4 }, { bulkShare: 0.25 });
    void add('running');
    await settled();
    for (let at = 0; at < 40; at++) {
      void add('interactive');
      void add('bulk', { laneRank: 1 });
    }
    await settled();
    for (let at = 0; at < 9; at++) await batches[at]?.answer();
    const ledBy = batches.slice(1, 9).map((batch) => batch.names.join());
    const [interactive, bulk] = ['interactive', 'bulk'].map((name) => Array(4).fill(name).join());
    expect(ledBy).toEqual([
      ...[interactive, bulk, interactive, interactive],
      ...[interactive, bulk, interactive, interactive],
    ]);
  });

  it('take a group of the other lane where nothing of the one whose turn it is is full or due', async () => {
    const { batches, add } = setup({ maxRows: 2, prefetch: 1 });
    void add('running');
    await settled();
    void add('interactive, alone', { group: 'h' });
    for (const name of ['bulk 1', 'bulk 2']) void add(name, { laneRank: 1 });
    await settled();
    expect(batches[1]?.names).toEqual(['bulk 1', 'bulk 2']);
  });
});

describe('after a batch has ended, while another runs', () => {
  it('hands nothing on ahead before what the queue sends in its place: that may come first', async () => {
    const { batches, add } = setup({ maxRows: 2, prefetch: 1 }, { refillMs: () => 5 });
    for (let at = 0; at < 8; at++) void add(`ann ${at}`);
    await settled();
    expect(batches).toHaveLength(2);
    await batches[0]?.answer();
    expect(batches).toHaveLength(2);
    void add('new', { tenant: 'bob' });
    await settled();
    expect(batches[2]?.names).toContain('new');
  });

  it('hands on what it holds where nothing is sent for a while, and at once where nothing runs', async () => {
    const { batches, add, clock } = setup({ maxRows: 2, prefetch: 1 }, { refillMs: () => 5 });
    for (let at = 0; at < 8; at++) void add(`ann ${at}`);
    await settled();
    await batches[0]?.answer();
    clock.advance(4);
    await settled();
    expect(batches).toHaveLength(2);
    clock.advance(1);
    await settled();
    expect(batches).toHaveLength(3);
    await batches[1]?.answer();
    await batches[2]?.answer();
    expect(batches).toHaveLength(4);
  });
});
