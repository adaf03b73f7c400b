import type { Clock } from '@remuda/core/lifecycle/clock';
import { describe, expect, it } from 'vitest';
import type { ChildApp, ChildEnd } from './child-app.js';
import { WorkerKeeper } from './worker-keeper.js';

class FakeChild {
  readonly name = 'worker 1';
  calls: string[] = [];
  end!: (how?: string) => void;
  becomeReady!: () => void;
  readonly ended = new Promise<ChildEnd>((resolve) => {
    this.end = (how = 'SIGKILL') => resolve({ how });
  });
  readonly ready = new Promise<void>((resolve) => {
    this.becomeReady = resolve;
  });
  terminate(): void {
    this.calls.push('terminate');
    this.end('SIGTERM');
  }
  killGroup(): void {
    this.calls.push('killGroup');
  }
  describeEnd({ how }: ChildEnd): string {
    return `worker 1 ended with ${how}`;
  }
}

function setup() {
  const children: FakeChild[] = [];
  const said: string[] = [];
  let now = 0;
  let timers: { at: number; callback: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    after(ms, callback) {
      const timer = { at: now + ms, callback };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  const advance = async (ms: number) => {
    now += ms;
    const due = timers.filter((timer) => timer.at <= now);
    timers = timers.filter((timer) => timer.at > now);
    for (const { callback } of due) callback();
    await new Promise(setImmediate);
  };
  const keeper = new WorkerKeeper({
    clock,
    say: (line) => void said.push(line),
    start: () => {
      const child = new FakeChild();
      children.push(child);
      return child as unknown as ChildApp;
    },
  });
  const die = async (how?: string) => {
    children.at(-1)?.end(how);
    await new Promise(setImmediate);
  };
  return { keeper, children, said, advance, die };
}

describe('a worker under `remuda up`', () => {
  it('that dies is told of, its group killed, and started again', async () => {
    const { keeper, children, said, advance, die } = setup();
    keeper.keep();
    await die();
    expect(children[0]?.calls).toEqual(['killGroup']);
    expect(said).toEqual(['worker 1 ended with SIGKILL\n  starting it again in 0.5 s']);
    await advance(500);
    expect(children).toHaveLength(2);
    children[1]?.becomeReady();
    await advance(0);
    expect(said.at(-1)).toBe('worker 1 is ready again');
  });

  it('that dies again and again is started later each time, and soon again once it has lived', async () => {
    const { keeper, said, advance, die } = setup();
    const delay = () => Number(/in ([\d.]+) s/.exec(said.at(-1) ?? '')?.[1]);
    keeper.keep();
    const delays: number[] = [];
    for (let death = 0; death < 8; death++) {
      await die();
      delays.push(delay());
      await advance(delay() * 1_000);
    }
    expect(delays).toEqual([0.5, 1, 2, 4, 8, 16, 30, 30]);
    await advance(60_000);
    await die();
    expect(delay()).toBe(0.5);
  });

  it('that ends before the fleet is up is not started again', async () => {
    const { children, said, advance, die } = setup();
    await die('code 1');
    await advance(60_000);
    expect(children).toHaveLength(1);
    expect(said).toEqual([]);
  });

  it('stays down once it is stopped, also while a new start was due', async () => {
    const { keeper, children, advance, die } = setup();
    keeper.keep();
    await die();
    await keeper.stop();
    await advance(60_000);
    expect(children).toHaveLength(1);
  });

  it('stops softly', async () => {
    const { keeper, children, said } = setup();
    keeper.keep();
    await keeper.stop();
    expect(children[0]?.calls[0]).toBe('terminate');
    expect(said).toEqual([]);
  });
});
