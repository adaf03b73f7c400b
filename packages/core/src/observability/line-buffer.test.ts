import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LineBuffer } from './line-buffer.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setup() {
  const calls: string[] = [];
  const buffer = new LineBuffer({ write: (text) => calls.push(text), flush: () => calls.push('flush') });
  return { buffer, calls };
}

describe('a line buffer', () => {
  it('passes lines on together after 50 ms', () => {
    const { buffer, calls } = setup();
    buffer.write('a\n');
    vi.advanceTimersByTime(49);
    buffer.write('b\n');
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(calls).toEqual(['a\nb\n', 'flush']);
    vi.advanceTimersByTime(1000);
    expect(calls).toHaveLength(2);
  });

  it('passes them on at once when there are many', () => {
    const { buffer, calls } = setup();
    for (let i = 0; i < 100; i++) buffer.write('x'.repeat(100));
    expect(calls.map((call) => call.length)).toEqual([8200, 'flush'.length]);
    vi.advanceTimersByTime(50);
    expect(calls.map((call) => call.length)).toEqual([8200, 5, 1800, 5]);
  });

  it('hands over what is left without beginning to write', () => {
    const { buffer, calls } = setup();
    buffer.write('a\n');
    buffer.handOver();
    buffer.handOver();
    expect(calls).toEqual(['a\n']);
  });
});
