import { describe, expect, it } from 'vitest';
import { NO_USAGE, type Usage } from '../store/usage.js';
import { DrainRate } from './drain-rate.js';

const usage = (over: Partial<Usage>): Usage => ({ ...NO_USAGE, ...over });

describe('the rate at which a queue drains', () => {
  it('is not known before a second of readings', () => {
    const drain = new DrainRate();
    drain.note(usage({ requests: 10, rows: 10 }), 0);
    drain.note(usage({ requests: 5, rows: 5, ended: 5, rowsEnded: 5 }), 900);
    expect(drain.rate(900)).toBeUndefined();
  });

  it('is what has ended between two readings, in requests and in rows', () => {
    const drain = new DrainRate();
    drain.note(usage({ requests: 100, rows: 400 }), 0);
    drain.note(usage({ requests: 90, rows: 360, ended: 40, rowsEnded: 160 }), 2_000);
    expect(drain.rate(2_000)).toMatchObject({ requestsPerS: 20, rowsPerS: 80 });
  });

  it('waits for runs that take longer than a second', () => {
    const drain = new DrainRate();
    drain.note(usage({ requests: 8, rows: 8 }), 0);
    drain.note(usage({ requests: 8, rows: 8 }), 2_000);
    expect(drain.rate(2_000)).toBeUndefined();
    drain.note(usage({ requests: 4, rows: 4, ended: 4, rowsEnded: 4 }), 4_000);
    expect(drain.rate(4_000)).toMatchObject({ requestsPerS: 1 });
  });

  it('begins anew where the counter of a queue began anew, and forgets what is long ago', () => {
    const drain = new DrainRate();
    drain.note(usage({ requests: 5, rows: 5, ended: 100, rowsEnded: 100 }), 0);
    drain.note(usage({ requests: 5, rows: 5, ended: 2, rowsEnded: 2 }), 1_000);
    expect(drain.rate(1_000)).toBeUndefined();
    drain.note(usage({ requests: 5, rows: 5, ended: 12, rowsEnded: 12 }), 2_000);
    expect(drain.rate(2_000)).toMatchObject({ requestsPerS: 10 });
    expect(drain.rate(12_000)).toBeUndefined();
  });
});
