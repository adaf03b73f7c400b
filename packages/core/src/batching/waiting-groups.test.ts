import { describe, expect, it } from 'vitest';
import { BULK, INTERACTIVE, type LaneRank } from '../fairness/lane-share.js';
import { decide, fill, type GroupState, type PolicyLimits } from './batch-policy.js';
import { Heap } from './heap.js';
import { compareTurns, lineKey, PATIENCE_MS, type Turn } from './turn-order.js';
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
    laneRank: random(2) as LaneRank,
    tenant: `t${random(3)}`,
    weight: 1,
    priority: random(3),
    // The tags of a line never go back.
    rank: Math.floor(seq / 3) + random(2),
    deadline: random(3) === 0 ? now + 1 + random(40) : 0,
    acceptedAt: now - random(20),
    arrivedAt: now,
    seq,
    urgent: random(6) === 0,
    gone: false,
  };
}

/** The rule, by looking over all that waits: turns of lines, and for each turn the nearest deadline of its line. */
class PlainGroups {
  waiting: HeldEntry[] = [];
  /** By group, lane and line; those of a line that has nothing left are void. */
  #turns: { of: string; turn: Turn }[] = [];

  add(entry: HeldEntry): void {
    this.waiting.push(entry);
    this.#turns.push({
      of: ofEntry(entry),
      turn: { rank: entry.rank, priority: entry.priority, seq: entry.seq },
    });
  }

  drop(gone: readonly HeldEntry[]): void {
    this.waiting = this.waiting.filter((entry) => !gone.includes(entry));
    this.#turns = this.#turns.filter(({ of }) => this.waiting.some((entry) => ofEntry(entry) === of));
  }

  states(lane: LaneRank): [string, GroupState][] {
    return [...groupsOf(this.waiting)].flatMap(([key, entries]): [string, GroupState][] => {
      const [first] = this.#turnsOf(key, lane);
      if (!first) return [];
      const state = {
        first: first.turn,
        rows: entries.reduce((sum, entry) => sum + entry.rows, 0),
        oldestArrival: Math.min(...entries.map((entry) => entry.arrivedAt)),
        urgent: entries.some((entry) => entry.urgent),
      };
      return [[key, state]];
    });
  }

  take(key: string, lead: LaneRank, maxRows: number): HeldEntry[] {
    const lanes = lead === BULK ? ([BULK, INTERACTIVE] as const) : ([INTERACTIVE, BULK] as const);
    const taken: { entry: HeldEntry; turn: Turn }[] = [];
    const next = (): HeldEntry | undefined => {
      for (const lane of lanes) {
        const [first] = this.#turnsOf(key, lane);
        if (!first) continue;
        const entry = this.#nearestOf(first.of);
        this.#turns = this.#turns.filter((one) => one !== first);
        this.drop([entry]);
        taken.push({ entry, turn: first.turn });
        return entry;
      }
      return undefined;
    };
    const { batch, passed } = fill(next, maxRows);
    for (const entry of passed) {
      const { turn } = taken.find((one) => one.entry === entry) as { turn: Turn };
      this.add({ ...entry, rank: turn.rank });
    }
    return batch;
  }

  takeAll(): HeldEntry[] {
    return ([INTERACTIVE, BULK] as const).flatMap((lane) => {
      const all: { entry: HeldEntry; turn: Turn }[] = [];
      for (const key of groupsOf(this.waiting).keys())
        for (let [first] = this.#turnsOf(key, lane); first; [first] = this.#turnsOf(key, lane)) {
          const entry = this.#nearestOf(first.of);
          all.push({ entry, turn: { ...first.turn, seq: entry.seq } });
          const taken = first;
          this.#turns = this.#turns.filter((one) => one !== taken);
          this.drop([entry]);
        }
      return all.sort((a, b) => compareTurns(a.turn, b.turn)).map(({ entry }) => entry);
    });
  }

  #turnsOf(key: string, lane: LaneRank): { of: string; turn: Turn }[] {
    return this.#turns
      .filter(({ of }) => of.startsWith(`${key} ${lane} `))
      .sort((a, b) => compareTurns(a.turn, b.turn));
  }

  #nearestOf(line: string): HeldEntry {
    const due = (entry: HeldEntry): number => entry.deadline || entry.acceptedAt + PATIENCE_MS;
    const entries = this.waiting.filter((entry) => ofEntry(entry) === line);
    return entries.sort((a, b) => due(a) - due(b) || a.seq - b.seq)[0] as HeldEntry;
  }
}

function ofEntry(entry: HeldEntry): string {
  return `${entry.group} ${entry.laneRank} ${lineKey(entry)}`;
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
        plain.add(entry);
        const expired = plain.waiting.filter(({ deadline }) => deadline !== 0 && deadline <= now);
        plain.drop(expired);
        expect(seqsOf(groups.takeExpired(now)).sort()).toEqual(seqsOf(expired).sort());

        const inFlight = random(2);
        const lane = random(2) as LaneRank;
        const decision = decide(groups.candidates(lane, inFlight === 0, now), inFlight, now, limits);
        const all = decide(plain.states(lane), inFlight, now, limits);
        // When to look again may be said of a group of the other lane: it is due then, too.
        expect('close' in decision && decision).toEqual('close' in all && all);
        if ('close' in decision && random(3) > 0) {
          const batch = groups.take(decision.close, lane, now);
          expect(seqsOf(batch)).toEqual(seqsOf(plain.take(decision.close, lane, limits.maxRows)));
        }
        expect([groups.count, groups.rows]).toEqual([
          plain.waiting.length,
          plain.waiting.reduce((sum, waiting) => sum + waiting.rows, 0),
        ]);
      }
      expect(seqsOf(groups.takeAll())).toEqual(seqsOf(plain.takeAll()));
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
          {
            ...entry,
            rows: 1,
            group: groupOf(at),
            laneRank: 0,
            priority: 0,
            rank: at,
            deadline: 0,
            acceptedAt: 0,
          },
          1_000,
        );
      }
      const seen: number[] = [];
      while (groups.count > 0) {
        const decision = decide(groups.candidates(INTERACTIVE, true, 1_000), 0, 1_000, limits);
        if (!('close' in decision)) throw new Error('nothing to close');
        seen.push(...seqsOf(groups.take(decision.close, INTERACTIVE, 1_000)));
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
