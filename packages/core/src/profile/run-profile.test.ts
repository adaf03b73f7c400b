import { describe, expect, it } from 'vitest';
import { RunProfile } from './run-profile.js';

const newProfile = () => new RunProfile({ instances: 1, maxRows: 8 });

function measure(profile: RunProfile, rows: number, seconds: number, { times = 1, shape = 's' } = {}): void {
  for (let i = 0; i < times; i++) profile.measured({ rows, seconds }, shape);
}

describe('the time of a run', () => {
  it('is not known before one was measured', () => {
    const profile = newProfile();
    expect([profile.runSeconds(), profile.runSeconds(4), profile.p95(), profile.secondsPerRow]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  it('is the median of its size, on the line between sizes, in proportion above them, and no less below', () => {
    const profile = newProfile();
    measure(profile, 2, 0.2, { times: 5 });
    measure(profile, 8, 0.5, { times: 5 });
    expect(profile.runSeconds(2)).toBe(0.2);
    expect(profile.runSeconds(5)).toBeCloseTo(0.35);
    expect(profile.runSeconds(16)).toBeCloseTo(1);
    expect(profile.runSeconds(1)).toBe(0.2);
  });

  it('is not moved by a slow run, which the 95th percentile tells of when there are more', () => {
    const profile = newProfile();
    measure(profile, 8, 0.1, { times: 59 });
    measure(profile, 8, 9, { times: 3 });
    expect(profile.runSeconds(8)).toBe(0.1);
    expect(profile.p95(8)).toBe(0.1);
    measure(profile, 8, 9, { times: 2 });
    expect(profile.p95(8)).toBe(9);
  });

  it('follows a model that has become slower', () => {
    const profile = newProfile();
    measure(profile, 8, 0.1, { times: 500 });
    measure(profile, 8, 0.4, { times: 40 });
    expect(profile.runSeconds(8)).toBe(0.4);
  });

  it('is kept for each shape, and is that of all shapes for one that was not seen', () => {
    const profile = newProfile();
    measure(profile, 4, 0.1, { shape: 'narrow', times: 3 });
    measure(profile, 4, 0.9, { shape: 'wide' });
    expect(profile.runSeconds(4, 'narrow')).toBe(0.1);
    expect(profile.runSeconds(4, 'wide')).toBe(0.9);
    expect(profile.runSeconds(4, 'unseen')).toBe(0.1);
  });

  it('forgets the shape that was not used for the longest time when there are too many', () => {
    const profile = newProfile();
    measure(profile, 4, 0.9, { shape: 'kept' });
    measure(profile, 4, 0.8, { shape: 'old' });
    for (let i = 0; i < 31; i++) {
      measure(profile, 4, 0.1, { shape: `s${i}` });
      measure(profile, 4, 0.9, { shape: 'kept', times: 2 });
    }
    expect(profile.runSeconds(4, 'kept')).toBe(0.9);
    expect(profile.runSeconds(4, 'old')).not.toBe(0.8);
  });
});

describe('seconds a row', () => {
  it('are reckoned from a full run while it was never busy', () => {
    const profile = new RunProfile({ instances: 2, maxRows: 8 });
    measure(profile, 8, 0.8);
    expect(profile.secondsPerRow).toBeCloseTo(0.05);
  });

  /** One batch runs and one waits behind it all the time; each takes `ms`. */
  function busy(profile: RunProfile, batches: number, ms: (at: number) => number): void {
    let now = 0;
    profile.began();
    for (let at = 0; at < batches; at++) {
      profile.began();
      now += ms(at);
      profile.ended(now, 4);
    }
  }

  it('are measured from end to end where a batch waits behind each instance', () => {
    const profile = newProfile();
    measure(profile, 8, 8);
    busy(profile, 20, () => 100);
    expect(profile.secondsPerRow).toBeCloseTo(0.025);
  });

  it('are not measured on lone batches, however long these take', () => {
    const profile = newProfile();
    measure(profile, 8, 0.08);
    for (let at = 0; at < 50; at++) {
      profile.began();
      profile.ended(at * 1_000, 1);
    }
    expect(profile.secondsPerRow).toBeCloseTo(0.01);
  });

  it('are not moved by a stall', () => {
    const profile = newProfile();
    busy(profile, 40, (at) => (at === 20 ? 60_000 : 100));
    expect(profile.secondsPerRow).toBeCloseTo(0.025);
  });

  it('are measured anew with another number of instances', () => {
    const profile = newProfile();
    measure(profile, 8, 0.8);
    busy(profile, 20, () => 400);
    expect(profile.secondsPerRow).toBeCloseTo(0.1);
    profile.reconfigure({ instances: 2, maxRows: 8 });
    expect(profile.secondsPerRow).toBeCloseTo(0.05);
  });
});
