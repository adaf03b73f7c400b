import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../observability/logger.js';
import type { Clock } from './clock.js';
import { type RunUntilSignalOptions, runUntilSignal } from './run-until-signal.js';
import type { Service } from './service.js';

/** A clock that stands still until it is told to go on. */
class FakeClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.callback();
    }
  }

  get pending(): number {
    return this.#timers.size;
  }
}

function deferred() {
  let resolve = (): void => {};
  let reject = (_error: Error): void => {};
  const promise = new Promise<void>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}

/** A service whose start and stop end when the test says. */
function setup(options: Partial<RunUntilSignalOptions> = {}) {
  const host = Object.assign(new EventEmitter(), { ppid: 100 });
  const clock = new FakeClock();
  const exits: number[] = [];
  const lines: Record<string, unknown>[] = [];
  const start = deferred();
  const stop = deferred();
  const calls: string[] = [];
  const service: Service = {
    name: 'worker',
    start() {
      calls.push('start');
      return start.promise;
    },
    stop() {
      calls.push('stop');
      return stop.promise;
    },
  };
  const logger = createLogger({
    name: 'test',
    level: 'info',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const exit = (code: number): void => void exits.push(code);
  const done = runUntilSignal(service, { logger, exit, host, clock, hardLimitMs: 5_000, ...options });
  return { host, clock, exits, lines, start, stop, calls, done };
}

/** Lets everything that is ready to run do so. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('runUntilSignal', () => {
  it.each(['SIGTERM', 'SIGINT'])('stops the service on %s and exits with 0', async (signal) => {
    const { host, start, stop, calls, done, exits, clock } = setup();
    start.resolve();
    await settle();
    expect(calls).toEqual(['start']);
    host.emit(signal);
    await settle();
    expect(calls).toEqual(['start', 'stop']);
    expect(exits).toEqual([]);
    stop.resolve();
    expect(await done).toBe(0);
    expect(exits).toEqual([0]);
    expect(clock.pending).toBe(0);
    expect(host.listenerCount(signal)).toBe(0);
  });

  it('exits at once on a second signal', async () => {
    const { host, start, done, exits } = setup();
    start.resolve();
    host.emit('SIGTERM');
    await settle();
    host.emit('SIGINT');
    expect(await done).toBe(130);
    expect(exits).toEqual([130]);
  });

  it('exits with 1 at the hard limit, saying what did not stop', async () => {
    const { host, start, clock, done, lines } = setup({ stillRunning: () => ['runner cuda:0'] });
    start.resolve();
    host.emit('SIGTERM');
    await settle();
    clock.advance(4_999);
    await settle();
    expect(lines.some((line) => line.level === 'error')).toBe(false);
    clock.advance(1);
    expect(await done).toBe(1);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', still_running: ['runner cuda:0'], hard_limit_ms: 5_000 }),
    );
  });

  it('exits with 1 and the reason when the service does not start', async () => {
    const { start, done, lines, calls } = setup();
    start.reject(new Error('port 3000 is in use'));
    expect(await done).toBe(1);
    expect(calls).toEqual(['start']);
    expect(lines[0]).toMatchObject({ msg: 'worker did not start', err: { message: 'port 3000 is in use' } });
  });

  it('exits with 1 and the reason when the stop fails', async () => {
    const { host, start, stop, done, lines } = setup();
    start.resolve();
    host.emit('SIGTERM');
    stop.reject(new Error('Redis is away'));
    expect(await done).toBe(1);
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'worker failed to stop' }));
  });

  it('stops a service that has not finished to start', async () => {
    const { host, stop, calls, done } = setup();
    host.emit('SIGTERM');
    await settle();
    expect(calls).toEqual(['start', 'stop']);
    stop.resolve();
    expect(await done).toBe(0);
  });

  it('stops when the parent is gone, where that is asked for', async () => {
    const { host, clock, start, stop, done, calls, lines } = setup({ stopWithParent: true });
    start.resolve();
    clock.advance(1_000);
    await settle();
    expect(calls).toEqual(['start']);
    host.ppid = 1;
    clock.advance(1_000);
    stop.resolve();
    expect(await done).toBe(0);
    expect(lines).toContainEqual(expect.objectContaining({ reason: 'parent gone' }));
    expect(clock.pending).toBe(0);
  });

  it('stops when the channel to the parent ends, where that is asked for', async () => {
    const { host, start, stop, done } = setup({ stopWithParent: true });
    start.resolve();
    host.emit('disconnect');
    stop.resolve();
    expect(await done).toBe(0);
  });
});
