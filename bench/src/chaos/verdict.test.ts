import type { InferenceResult } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import type { LedgerEntry } from './load/ledger-file.js';
import { type Evidence, judge } from './verdict.js';
import type { WitnessedRequest } from './watch/witness.js';

const ENTRY: LedgerEntry = {
  ...{ id: 'a', model: 'held', expected: [{ values: [1, 2] }], items: false, deadline: false, cancel: false },
};

function result(over: Partial<InferenceResult> = {}): InferenceResult {
  const outputs = { y: { datatype: 'FP32', shape: [1, 2], data: [1, 2] } };
  return {
    request_id: 'a',
    status: 'succeeded',
    outputs,
    items: null,
    error: null,
    ...over,
  } as InferenceResult;
}

function failed(code: string): InferenceResult {
  return result({
    status: 'failed',
    outputs: null,
    error: { code, message: 'x' } as InferenceResult['error'],
  });
}

function witnessed(over: Partial<WitnessedRequest> = {}): WitnessedRequest {
  return {
    ...{ status: 'succeeded', holder: 'w1', ends: ['succeeded'], rewritten: 0, seenAt: 1, endedAt: 2 },
    outcomes: new Map([[0, { writer: 'w1', holder: 'w1' }]]),
    ...over,
  };
}

const about = (over: Partial<Evidence>, entry: Partial<LedgerEntry> = {}) =>
  judge({ ...ENTRY, ...entry }, { witnessed: witnessed(), result: result(), delivered: 0, ...over });

describe('of an accepted request the verdict', () => {
  it('finds nothing where it ended once with its answer', () => {
    expect(about({})).toEqual({ entry: ENTRY, terminal: true, gaveUp: false, webhookMissing: false });
  });

  it('is lost without an end, with a wrong answer, and with an end that nobody asked for', () => {
    expect(about({ result: null })).toMatchObject({ terminal: false, lost: 'it has no end' });
    const wrong = { y: { datatype: 'FP32' as const, shape: [1, 2], data: [2, 1] } };
    expect(about({ result: result({ outputs: wrong }) }).lost).toBe(
      'its answer is [2,1] and should be [1,2]',
    );
    expect(about({ result: result({ status: 'cancelled' }) }).lost).toBe('nobody has cancelled it');
    expect(about({ result: result({ status: 'expired' }) }).lost).toBe('it expired without a deadline');
    expect(about({ result: failed('invalid_input') }).lost).toContain('it failed with invalid_input');
  });

  it('takes the ends that were asked for, and the failure that an input must have', () => {
    const cancelled = witnessed({ ends: ['cancelled'] });
    expect(
      about({ witnessed: cancelled, result: result({ status: 'cancelled' }) }, { cancel: true }).lost,
    ).toBe(undefined);
    const asExpected = about(
      { witnessed: witnessed({ ends: ['failed'] }), result: failed('inference_failed') },
      { expected: [{ code: 'inference_failed' }] },
    );
    expect(asExpected).toMatchObject({ terminal: true, gaveUp: false });
    expect(asExpected.lost).toBe(undefined);
    expect(about({}, { expected: [{ code: 'inference_failed' }] }).lost).toContain('it should fail');
  });

  it('counts apart what was given up since processes died under it', () => {
    const given = about({ witnessed: witnessed({ ends: ['failed'] }), result: failed('runner_crashed') });
    expect(given).toMatchObject({ terminal: true, gaveUp: true });
    expect(given.lost).toBe(undefined);
  });

  it('is doubled by two ends, an overwritten outcome, the result of who had lost it, another end than is told', () => {
    const doubledBy = (over: Partial<WitnessedRequest>) => about({ witnessed: witnessed(over) }).doubled;
    expect(doubledBy({ ends: ['failed', 'succeeded'] })).toBe('it ended as failed, then succeeded');
    expect(doubledBy({ rewritten: 1 })).toContain('written over');
    const late = new Map([[0, { writer: 'w1', holder: 'w2' }]]);
    expect(doubledBy({ outcomes: late })).toBe('it shows the result of w1, which had lost it to w2');
    expect(doubledBy({ ends: ['failed'] })).toBe('it ended as failed and is told as succeeded');
  });

  it('misses a webhook that was asked for and never taken, but none of a receiver that may be gone', () => {
    expect(about({}, { webhook: 'moody' }).webhookMissing).toBe(true);
    expect(about({ delivered: 2 }, { webhook: 'moody' }).webhookMissing).toBe(false);
    expect(about({}, { webhook: 'gone' }).webhookMissing).toBe(false);
  });
});
