import { describe, expect, it } from 'vitest';
import { type Entry, HostGates } from './host-gates.js';

const HOST = 'sink.example:443';

function entered(entry: Entry): Extract<Entry, { entered: true }> {
  if (!entry.entered) throw new Error(`not let in: ${entry.reason}`);
  return entry;
}

function putOff(entry: Entry): Extract<Entry, { entered: false }> {
  if (entry.entered) throw new Error('let in');
  return entry;
}

describe('a host', () => {
  it('has no more attempts at once than it may, and others do not notice', () => {
    const gates = new HostGates({ atOnce: 2 });
    entered(gates.enter(HOST, 0, 0));
    const second = entered(gates.enter(HOST, 0, 0));
    expect(putOff(gates.enter(HOST, 0, 0)).reason).toBe('busy');
    entered(gates.enter('other.example:443', 0, 0));
    second.leave(true, 10);
    entered(gates.enter(HOST, 10, 0));
  });

  it('gets fewer while its last attempt failed', () => {
    const gates = new HostGates({ atOnce: 8, atOnceInDoubt: 1 });
    entered(gates.enter(HOST, 0, 0)).leave(false, 10);
    entered(gates.enter(HOST, 10, 0)).leave(false, 10);
    const one = entered(gates.enter(HOST, 20, 0));
    expect(putOff(gates.enter(HOST, 20, 0)).reason).toBe('busy');
    one.leave(true, 10);
    entered(gates.enter(HOST, 30, 0));
    entered(gates.enter(HOST, 30, 0));
  });

  it('is left alone after failures in a row, then probed by one, then open again', () => {
    const gates = new HostGates({ failures: 3, pauseMs: 1_000 });
    for (let at = 0; at < 3; at++) entered(gates.enter(HOST, at, 0)).leave(false, 0);
    const closed = putOff(gates.enter(HOST, 500, 0));
    expect(closed).toMatchObject({ reason: 'breaker', againMs: 502 });
    expect(gates.notClosed(500)).toBe(1);
    const probe = entered(gates.enter(HOST, 1_100, 0));
    expect(putOff(gates.enter(HOST, 1_100, 0)).reason).toBe('breaker');
    probe.leave(true, 10);
    expect(gates.notClosed(1_200)).toBe(0);
    entered(gates.enter(HOST, 1_200, 0));
  });

  it('stays alone longer after each probe that fails, up to a limit', () => {
    const gates = new HostGates({ failures: 1, pauseMs: 1_000, maxPauseMs: 3_000 });
    let now = 0;
    const pauses: number[] = [];
    for (let probe = 0; probe < 4; probe++) {
      entered(gates.enter(HOST, now, 0)).leave(false, 0);
      const { againMs } = putOff(gates.enter(HOST, now, 0));
      pauses.push(againMs);
      now += againMs;
    }
    expect(pauses).toEqual([1_000, 2_000, 3_000, 3_000]);
  });
});

it('those who are put off come back one after the other, as fast as the host takes them', () => {
  const gates = new HostGates({ atOnce: 1 });
  entered(gates.enter(HOST, 0, 0)).leave(true, 1_000);
  entered(gates.enter(HOST, 0, 0));
  const turns = Array.from({ length: 5 }, () => putOff(gates.enter(HOST, 0, 0)).againMs);
  const gaps = turns.slice(1).map((turn, at) => turn - (turns[at] as number));
  // 0.8 × the first guess of 10 ms + 0.2 × 1,000 ms.
  expect(gaps).toEqual([208, 208, 208, 208]);
});

it('a host that hangs is taken to need as long as it has hung', () => {
  const gates = new HostGates({ atOnce: 2 });
  entered(gates.enter(HOST, 0, 0));
  entered(gates.enter(HOST, 9_000, 0));
  const [first, second] = [0, 0].map(() => putOff(gates.enter(HOST, 10_000, 0)).againMs);
  expect([first, second]).toEqual([5_000, 10_000]);
});

it('nobody is sent away for more than a minute and a half', () => {
  const gates = new HostGates({ atOnce: 1 });
  entered(gates.enter(HOST, 0, 0));
  const longest = Math.max(
    ...Array.from({ length: 10_000 }, () => putOff(gates.enter(HOST, 0, 0.999)).againMs),
  );
  expect(longest).toBeLessThanOrEqual(90_000);
});

it('hosts that nothing is sent to are forgotten', () => {
  const gates = new HostGates({ failures: 1, maxPauseMs: 10 });
  for (let host = 0; host < 1_000; host++) entered(gates.enter(`${host}:80`, 0, 0)).leave(false, 0);
  expect(gates.notClosed(1_000_000)).toBe(1_000);
  entered(gates.enter('new:80', 1_000_000, 0));
  expect(gates.notClosed(1_000_000)).toBe(0);
});
