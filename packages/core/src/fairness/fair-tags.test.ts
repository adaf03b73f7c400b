/** The bounds that docs/fairness.md states, over many sequences of requests that look random. */
import { describe, expect, it } from 'vitest';
import { FairTags, PRIORITIES, type Turn } from './fair-tags.js';
import { PARTS_OF_ROW } from './places.js';
import { type Queued, rowsOf, SimulatedQueue, sequence } from './simulated-queue.fixture.js';

const SEEDS = Array.from({ length: 25 }, (_, at) => at + 1);
const STEP = 20;
const MOST_ROWS = 30;
const WEIGHTS: Record<string, number> = { ann: 1, bob: 2, eve: 0.5 };
/** Start tags are told apart to this part of a row of virtual time. */
const PART = 1 / PARTS_OF_ROW;

function turn(tenant: string, change: Partial<Turn> = {}): Turn {
  return { tenant, weight: WEIGHTS[tenant] as number, rows: 1, priority: 5, ...change };
}

/** Comings and goings; `next` makes a request. Something waits all the time. */
function busyPeriod(
  seed: number,
  steps: number,
  next: (random: (below: number) => number) => Turn,
): SimulatedQueue {
  const random = sequence(seed);
  const queue = new SimulatedQueue(STEP);
  for (let at = 0; at < 50; at++) queue.add(next(random));
  for (let at = 0; at < steps; at++) {
    if (random(2) === 0 || queue.waiting < 3) queue.add(next(random));
    else queue.serve();
  }
  while (queue.waiting > 0) queue.serve();
  return queue;
}

const anyone = (random: (below: number) => number): Turn =>
  turn(Object.keys(WEIGHTS)[random(3)] as string, {
    rows: 1 + random(MOST_ROWS),
    priority: random(PRIORITIES),
  });

/** What was served before it though it came later. */
function overtakersOf(queued: Queued, served: readonly Queued[]): Queued[] {
  return served.slice(0, served.indexOf(queued)).filter(({ at }) => at > queued.at);
}

describe('priorities', () => {
  it('let a request be overtaken by at most nine steps of later rows of its own tenant, and one request', () => {
    let most = 0;
    for (const seed of SEEDS) {
      const { served } = busyPeriod(seed, 600, anyone);
      for (const queued of served) {
        const own = overtakersOf(queued, served).filter(({ tenant }) => tenant === queued.tenant);
        const bound = (PRIORITIES - 1) * STEP + MOST_ROWS + PART * queued.weight;
        expect(rowsOf(own)).toBeLessThanOrEqual(bound);
        most = Math.max(most, rowsOf(own));
      }
    }
    // The bound is no idle one.
    expect(most).toBeGreaterThan((PRIORITIES - 1) * STEP * 0.8);
  });

  it('serve a request of priority 9 while more urgent ones of its tenant never stop coming', () => {
    const queue = new SimulatedQueue(STEP);
    const earlier = 300;
    for (let at = 0; at < earlier; at++) queue.add(turn('ann'));
    const last = queue.add(turn('ann', { priority: 9 }));
    let before = 0;
    for (let served = queue.serve(); served !== last; served = queue.serve()) {
      queue.add(turn('ann', { priority: 0 }));
      before += 1;
    }
    expect(before - earlier).toBeGreaterThan((PRIORITIES - 1) * STEP - 5);
    expect(before - earlier).toBeLessThanOrEqual((PRIORITIES - 1) * STEP);
  });

  it('bring an urgent request before what its tenant has waiting, up to nine steps of rows', () => {
    for (const [waiting, before] of [
      [100, 0],
      [1_000, 1_000 - (PRIORITIES - 1) * STEP],
    ] as const) {
      const queue = new SimulatedQueue(STEP);
      for (let at = 0; at < waiting; at++) queue.add(turn('ann'));
      const urgent = queue.add(turn('ann', { priority: 0 }));
      expect(queue.position(urgent)).toBe(before);
    }
  });

  it('keep the order of arrival among the requests of a tenant that are equally urgent', () => {
    for (const seed of SEEDS) {
      const { served } = busyPeriod(seed, 400, anyone);
      for (const tenant of Object.keys(WEIGHTS)) {
        for (let priority = 0; priority < PRIORITIES; priority++) {
          const line = served.filter((one) => one.tenant === tenant && one.priority === priority);
          expect(line).toEqual([...line].sort((a, b) => a.at - b.at));
        }
      }
    }
  });
});

describe('tenants', () => {
  it('get rows by their weights while they wait: over any stretch to within a request of each', () => {
    for (const seed of SEEDS) {
      const random = sequence(seed);
      const queue = new SimulatedQueue();
      for (let at = 0; at < 300; at++)
        for (const tenant of Object.keys(WEIGHTS)) queue.add(turn(tenant, { rows: 1 + random(MOST_ROWS) }));
      // Up to where the first of them has nothing left.
      const left = new Map(Object.keys(WEIGHTS).map((tenant) => [tenant, 300]));
      while (Math.min(...left.values()) > 0) {
        const { tenant } = queue.serve() as Queued;
        left.set(tenant, (left.get(tenant) as number) - 1);
      }
      for (let from = 0; from < queue.served.length; from += 37) {
        for (let to = from + 1; to <= queue.served.length; to += 41) {
          const of = (tenant: string) =>
            rowsOf(queue.served.slice(from, to).filter((one) => one.tenant === tenant)) /
            (WEIGHTS[tenant] as number);
          const slack = (tenant: string) => MOST_ROWS / (WEIGHTS[tenant] as number) + PART;
          for (const [a, b] of [
            ['ann', 'bob'],
            ['bob', 'eve'],
            ['ann', 'eve'],
          ] as const)
            expect(Math.abs(of(a) - of(b))).toBeLessThanOrEqual(slack(a) + slack(b));
        }
      }
    }
  });

  it('take the turns of the example in docs/fairness.md', () => {
    const queue = new SimulatedQueue();
    const send = (tenant: string, count: number, weight: number) => {
      for (let at = 0; at < count; at++) queue.add({ tenant, weight, rows: 10, priority: 5 });
    };
    send('ann', 4, 1);
    send('bob', 3, 2);
    send('eve', 1, 1);
    while (queue.serve());
    expect(queue.served.map(({ tenant }) => tenant).join(' ')).toBe('ann bob eve bob ann bob ann ann');
  });

  it('who comes new waits for one request of each other, however many those have waiting', () => {
    for (const rows of [1, 7]) {
      const queue = new SimulatedQueue();
      for (let at = 0; at < 10_000; at++) queue.add(turn('bob', { rows }));
      for (let at = 0; at < 5; at++) queue.serve();
      const single = queue.add(turn('ann'));
      expect(queue.position(single)).toBeLessThanOrEqual(1);
    }
  });

  it('who comes new is not held up by what others call urgent either: one request of each priority, and 32 rows by weight', () => {
    const queue = new SimulatedQueue(STEP);
    for (let priority = 9; priority >= 0; priority--)
      for (let at = 0; at < 500; at++) queue.add(turn('eve', { priority }));
    const single = queue.add(turn('ann', { priority: 9 }));
    expect(queue.position(single)).toBeLessThanOrEqual(PRIORITIES + 32 * (WEIGHTS.eve as number));
  });

  it('gain by priorities no more than nine steps of rows over who waits as long', () => {
    for (const seed of SEEDS) {
      const random = sequence(seed);
      const queue = new SimulatedQueue(STEP);
      for (let at = 0; at < 1_000; at++) {
        queue.add(turn('ann', { priority: random(PRIORITIES) }));
        queue.add(turn('bob', { weight: 1 }));
      }
      let ahead = 0;
      for (let at = 0; at < 1_000; at++) {
        ahead += (queue.serve() as Queued).tenant === 'ann' ? 1 : -1;
        expect(ahead).toBeLessThanOrEqual((PRIORITIES - 1) * STEP + 2);
        expect(ahead).toBeGreaterThanOrEqual(-2);
      }
    }
  });

  it('are not charged in a busy period for what they had in an earlier one', () => {
    const queue = new SimulatedQueue();
    for (let at = 0; at < 50; at++) queue.add(turn('ann'));
    while (queue.waiting > 0) queue.serve();
    queue.add(turn('bob'));
    queue.add(turn('bob'));
    const again = queue.add(turn('ann', { rows: 1 }));
    expect(queue.position(again)).toBe(1);
  });

  it('are forgotten once their turns are over, in a busy period that never ends too', () => {
    const tags = new FairTags({ stepRows: STEP });
    let next: number | undefined;
    for (let at = 0; at < 20_000; at++)
      next = tags.tag(turn('ann', { tenant: `t${at}`, weight: 1 }), (next ?? 0) + 1);
    expect(tags.size).toBeLessThan(1_000);
  });
});
