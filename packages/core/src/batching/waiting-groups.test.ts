import { describe, expect, it } from 'vitest';
import { compareWaiting, decide, fill, type GroupState, type PolicyLimits } from './batch-policy.js';
import { Heap } from './heap.js';
import { type HeldEntry, WaitingGroups } from './waiting-groups.js';

/** Numbers that look random and are the same in every run. */
function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function entryOf(random: (below: number) => number, seq: number, now: number): HeldEntry {
  return {
    rows: 1 + random(4),
    group: `g${random(5)}`,
    laneRank: random(2),
    priority: random(3),
    deadline: random(3) === 0 ? now + 1 + random(40) : 0,
    acceptedAt: now - random(20),
    arrivedAt: now,
    seq,
    urgent: random(6) === 0,
    gone: false,
  };
}

/** The rule, by looking over all that waits. */
class PlainGroups {
  waiting: HeldEntry[] = [];
  states(): [string, GroupState][] {
    return [...groupsOf(this.#sorted())].map(([key, entries]) => [
      key,
      {
        head: entries[0] as HeldEntry,
        rows: entries.reduce((sum, entry) => sum + entry.rows, 0),
        oldestArrival: Math.min(...entries.map((entry) => entry.arrivedAt)),
        urgent: entries.some((entry) => entry.urgent),
      },
    ]);
  }
  take(key: string, maxRows: number): HeldEntry[] {
    const left = this.#sorted().filter((entry) => entry.group === key);
    const { batch } = fill(() => left.shift(), maxRows);
    this.waiting = this.waiting.filter((entry) => !batch.includes(entry));
    return batch;
  }
  #sorted(): HeldEntry[] {
    return [...this.waiting].sort((a, b) => compareWaiting(a, b) || a.seq - b.seq);
  }
}

function groupsOf(entries: HeldEntry[]): Map<string, HeldEntry[]> {
  const groups = new Map<string, HeldEntry[]>();
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  return groups;
}

const seqsOf = (entries: readonly HeldEntry[]): number[] => entries.map((entry) => entry.seq);

describe('what waits, in its indexes', () => {
  it('gives the batches that looking over everything would give, whatever comes, goes and changes', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = sequence(seed);
      let limits: PolicyLimits = { maxRows: 6, maxDelayMs: 10, instances: 1, prefetch: 1 };
      const groups = new WaitingGroups<HeldEntry>(limits);
      const plain = new PlainGroups();
      let now = 1_000;
      for (let step = 0; step < 300; step++) {
        now += random(4);
        if (random(25) === 0) {
          limits = { ...limits, maxRows: 1 + random(8), maxDelayMs: random(15) };
          groups.setLimits(limits, now);
        }
        const entry = entryOf(random, step, now);
        groups.add({ ...entry }, now);
        plain.waiting.push(entry);
        const expired = plain.waiting.filter(({ deadline }) => deadline !== 0 && deadline <= now);
        plain.waiting = plain.waiting.filter((waiting) => !expired.includes(waiting));
        expect(seqsOf(groups.takeExpired(now)).sort()).toEqual(seqsOf(expired).sort());

        const inFlight = random(2);
        const decision = decide(groups.candidates(inFlight === 0, now), inFlight, now, limits);
        expect(decision).toEqual(decide(plain.states(), inFlight, now, limits));
        if ('close' in decision && random(3) > 0) {
          const batch = groups.take(decision.close, now);
          expect(seqsOf(batch)).toEqual(seqsOf(plain.take(decision.close, limits.maxRows)));
        }
        expect([groups.count, groups.rows]).toEqual([
          plain.waiting.length,
          plain.waiting.reduce((sum, waiting) => sum + waiting.rows, 0),
        ]);
      }
      const left = plain.waiting.sort((a, b) => compareWaiting(a, b) || a.seq - b.seq);
      expect(seqsOf(groups.takeAll())).toEqual(seqsOf(left));
      expect(groups.count).toBe(0);
    }
  });

  it('closes tens of thousands of entries in order of arrival, of one group or each of its own', () => {
    const limits = { maxRows: 8, maxDelayMs: 10, instances: 1, prefetch: 1 };
    for (const groupOf of [() => 'one', (at: number) => `g${at}`]) {
      const groups = new WaitingGroups<HeldEntry>(limits);
      const random = sequence(1);
      for (let at = 0; at < 30_000; at++) {
        const entry = entryOf(random, at, 1_000);
        groups.add(
          { ...entry, rows: 1, group: groupOf(at), laneRank: 0, priority: 0, deadline: 0, acceptedAt: 0 },
          1_000,
        );
      }
      const seen: number[] = [];
      while (groups.count > 0) {
        const decision = decide(groups.candidates(true, 1_000), 0, 1_000, limits);
        if (!('close' in decision)) throw new Error('nothing to close');
        seen.push(...seqsOf(groups.take(decision.close, 1_000)));
      }
      expect(seen).toEqual(Array.from({ length: 30_000 }, (_, at) => at));
    }
  });
});

describe('a heap', () => {
  it('needs a few comparisons for each item, stale ones included', () => {
    let comparisons = 0;
    const heap = new Heap<{ at: number; stale: boolean }>({
      compare: (a, b) => {
        comparisons++;
        return a.at - b.at;
      },
      isStale: (item) => item.stale,
    });
    const random = sequence(7);
    const items = Array.from({ length: 20_000 }, () => ({ at: random(1_000_000), stale: false }));
    for (const item of items) {
      heap.push(item);
      item.stale = random(2) === 0;
    }
    const live = items.filter((item) => !item.stale).map((item) => item.at);
    const popped: number[] = [];
    for (let item = heap.pop(); item; item = heap.pop()) popped.push(item.at);
    expect(popped).toEqual(live.sort((a, b) => a - b));
    // log2 20,000 is 14.3; at each level of a pop two are compared.
    expect(comparisons).toBeLessThan(items.length * 40);
  });

  it('keeps no more stale items than live ones, or 64', () => {
    const heap = new Heap<{ stale: boolean }>({ compare: () => 0, isStale: (item) => item.stale });
    heap.push({ stale: false });
    for (let at = 0; at < 10_000; at++) heap.push({ stale: true });
    expect(heap.size).toBeLessThanOrEqual(64);
  });
});
