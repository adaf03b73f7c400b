import { describe, expect, it } from 'vitest';
import { decide, fill, type GroupState, MOST_PASSED_OVER, type Waiting } from './batch-policy.js';
import type { Turn } from './turn-order.js';

const limits = { maxRows: 4, maxDelayMs: 10, instances: 1, prefetch: 1 };

function waiting(change: Partial<Waiting> = {}): Waiting {
  return {
    rows: 1,
    group: 'g',
    laneRank: 0,
    tenant: 'ann',
    weight: 1,
    priority: 5,
    deadline: 0,
    acceptedAt: 0,
    arrivedAt: 0,
    ...change,
  };
}

function group(rows: number, { rank = 0, oldestArrival = 0 }: Partial<Turn & GroupState> = {}): GroupState {
  return { rows, first: { rank, priority: 5, seq: 0 }, oldestArrival, urgent: false };
}

describe('when a batch closes', () => {
  it('at once while an instance is idle, however few rows there are', () => {
    expect(decide([['g', group(1)]], 0, 0, limits)).toEqual({ close: 'g' });
  });

  it('not while all instances are busy and neither rows nor time suffice; it says when to look again', () => {
    expect(decide([['g', group(3, { oldestArrival: 5 })]], 1, 6, limits)).toEqual({ lookAgainAt: 15 });
  });

  it('ahead of time when the batch is full', () => {
    expect(decide([['g', group(4)]], 1, 1, limits)).toEqual({ close: 'g' });
  });

  it('ahead of time when its oldest rows have waited max_queue_delay_ms', () => {
    expect(decide([['g', group(1)]], 1, 10, limits)).toEqual({ close: 'g' });
  });

  it('never beyond instances and prefetch together', () => {
    expect(decide([['g', group(400)]], 2, 99, limits)).toEqual({ lookAgainAt: null });
  });

  it('takes the group whose turn comes first, not the fullest', () => {
    const groups: [string, GroupState][] = [
      ['full', group(4, { rank: 2 })],
      ['first', group(1, { rank: 1 })],
    ];
    expect(decide(groups, 0, 0, limits)).toEqual({ close: 'first' });
  });
});

describe('what goes into a batch', () => {
  const rowsOf = (entries: Waiting[]): number[] => entries.map((entry) => entry.rows);
  const fillFrom = (rows: number[], maxRows: number) => {
    const left = rows.map((count) => waiting({ rows: count }));
    const { batch, passed } = fill(() => left.shift(), maxRows);
    return { batch: rowsOf(batch), rest: rowsOf([...passed, ...left]) };
  };

  it('counts rows, and passes over what does not fit for what does', () => {
    expect(fillFrom([2, 3, 1, 1, 1], 4)).toEqual({ batch: [2, 1, 1], rest: [3, 1] });
  });

  it('sends an entry larger than a batch alone', () => {
    expect(fillFrom([9, 1], 4)).toEqual({ batch: [9], rest: [1] });
  });

  it('takes an entry without rows along, and nothing once it is full', () => {
    expect(fillFrom([0, 4, 0], 4)).toEqual({ batch: [0, 4], rest: [0] });
  });

  it('looks past a bounded number of entries that do not fit', () => {
    const large = new Array<number>(MOST_PASSED_OVER).fill(4);
    expect(fillFrom([1, ...large, 1], 4).batch).toEqual([1]);
    expect(fillFrom([1, ...large.slice(1), 1], 4).batch).toEqual([1, 1]);
  });
});
