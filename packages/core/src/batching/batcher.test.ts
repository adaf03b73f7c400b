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
