import { describe, expect, it } from 'vitest';
import { type BatchVerdict, Breaker, verdictOf } from './breaker.js';

function fed(
  verdicts: BatchVerdict[],
  breaker = new Breaker({ failures: 3, pauseMs: 100, maxPauseMs: 300 }),
) {
  const opened = verdicts.map((verdict) => breaker.record(verdict, 0));
  return { breaker, opened };
}

describe('a breaker', () => {
  it('opens after so many bad batches in a row, and says when it has', () => {
    const { breaker, opened } = fed(['bad', 'bad', 'bad']);
    expect(opened).toEqual([false, false, true]);
    expect(breaker.state(99)).toBe('open');
    expect(breaker.retryAfterMs(40)).toBe(60);
  });

  it('is reset by one batch that came well, and not by one that says nothing', () => {
    expect(fed(['bad', 'bad', 'good', 'bad', 'bad']).breaker.state(0)).toBe('closed');
    expect(fed(['bad', 'bad', 'neutral', 'bad']).breaker.state(0)).toBe('open');
  });

  it('is half open after the pause, and the next batch decides', () => {
    const { breaker } = fed(['bad', 'bad', 'bad']);
    expect(breaker.state(100)).toBe('half_open');
    breaker.record('neutral', 100);
    expect(breaker.state(100)).toBe('half_open');
    breaker.record('good', 100);
    expect(breaker.state(100)).toBe('closed');
  });

  it('waits twice as long after each probe that fails, up to a bound, and briefly again once it was well', () => {
    const { breaker } = fed(['bad', 'bad', 'bad']);
    expect(breaker.record('bad', 100)).toBe(true);
    expect(breaker.retryAfterMs(100)).toBe(200);
    breaker.record('bad', 300);
    expect(breaker.retryAfterMs(300)).toBe(300);
    breaker.record('good', 600);
    fed(['bad', 'bad', 'bad'], breaker);
    expect(breaker.retryAfterMs(0)).toBe(100);
  });

  it('does not count what was under way when it opened', () => {
    const { breaker } = fed(['bad', 'bad', 'bad', 'bad', 'bad']);
    expect(breaker.retryAfterMs(0)).toBe(100);
  });
});

describe('what a batch says about its model', () => {
  const failed = (code?: string) => ({ ok: false, code }) as const;

  it('is good where one item succeeded, whatever became of the others', () => {
    expect(verdictOf([failed('inference_failed'), { ok: true }])).toBe('good');
  });

  it('is bad where none did and one failed for the model or its runner', () => {
    for (const code of [
      'inference_failed',
      'output_mismatch',
      'runner_crashed',
      'run_timeout',
      'model_load_failed',
    ])
      expect(verdictOf([failed('item_rejected'), failed(code)])).toBe('bad');
  });

  it('is nothing where inputs, deadlines, Redis or a stop were at fault', () => {
    for (const code of [
      'item_rejected',
      'deadline_exceeded',
      'payload_missing',
      'worker_lost',
      'shutting_down',
      undefined,
    ])
      expect(verdictOf([failed(code)])).toBe('neutral');
    expect(verdictOf([])).toBe('neutral');
  });
});
