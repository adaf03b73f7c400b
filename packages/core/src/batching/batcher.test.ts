import { describe, expect, it } from 'vitest';
import type { Clock } from '../lifecycle/clock.js';
import type { PolicyLimits, Waiting } from './batch-policy.js';
import { Batcher } from './batcher.js';

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

function setup(limits: Partial<PolicyLimits> = {}) {
  const clock = new ManualClock();
  const batches: {
    names: string[];
    answer(outcomes?: string[]): Promise<void>;
    fail(error: Error): Promise<void>;
  }[] = [];
  const batcher = new Batcher<Entry, string>({
    limits: { maxRows: 4, maxDelayMs: 10, instances: 1, prefetch: 0, ...limits },
    clock,
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
