import { describe, expect, it } from 'vitest';
import { newItemRun } from './item-run.js';
import { dropLate, latestStart } from './late-items.js';

const NEVER = Number.POSITIVE_INFINITY;
const item = (limits?: { startBy?: number; finishBy?: number }, begun = false) => ({
  ...newItemRun([], {}),
  ...(limits && { limits: { startBy: NEVER, finishBy: NEVER, ...limits } }),
  begun,
});

/** What becomes of it just before a run that is expected to take so long, 1,000 ms after the start of time. */
function look(one: ReturnType<typeof item>, expectedRunMs?: number): string {
  dropLate([one], 1_000, expectedRunMs);
  expect(one.expired ?? false).toBe(one.failed !== undefined);
  return one.failed?.message ?? 'runs';
}

describe('just before its run, an item', () => {
  it.each([
    ['without deadlines', item(), 'runs'],
    ['in time', item({ startBy: 1_001, finishBy: 1_001 }), 'runs'],
    ['late to start', item({ startBy: 1_000 }), 'the deadline to start passed while it waited for its run'],
    [
      'late to start that has begun, in another run or before its batch was halved',
      item({ startBy: 500 }, true),
      'runs',
    ],
    [
      'late to finish',
      item({ finishBy: 900 }, true),
      'the deadline to finish passed before the request had ended',
    ],
  ])('%s: %s', (_, one, expected) => {
    expect(look(one)).toBe(expected);
  });

  it('whose run is expected to be over too late is not run, and is told the prediction', () => {
    expect(look(item({ finishBy: 1_051 }), 50)).toBe('runs');
    expect(look(item({ finishBy: 1_050 }), 50)).toBe(
      'it was not run: a run is expected to take 50 ms, and 50 ms were left until its deadline to finish',
    );
  });

  it('that has failed keeps its reason', () => {
    const failed = { code: 'item_rejected' as const, message: 'no image', retryable: false };
    const one = { ...item({ finishBy: 1 }), failed };
    dropLate([one], 1_000);
    expect(one.failed).toBe(failed);
  });
});

describe('the last moment at which a run may begin', () => {
  it('is that of the start, or the finish less what the run takes', () => {
    expect(latestStart(item({ startBy: 70, finishBy: 100 }), { expectedRunMs: 20 })).toBe(70);
    expect(latestStart(item({ startBy: 90, finishBy: 100 }), { expectedRunMs: 20 })).toBe(80);
    expect(latestStart(item({ startBy: 70, finishBy: 100 }, true), {})).toBe(100);
    expect(latestStart(item(), {})).toBe(NEVER);
  });
});
