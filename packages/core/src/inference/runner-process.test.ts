import { fork } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import { builtFile } from './built-file.js';
import type { RunnerProcessOptions } from './runner-process.js';
import {
  floats,
  lossOf,
  numbers,
  row,
  setup as setupIn,
  stopRunners,
  unit,
  work,
} from './runner-setup.fixture.js';
import { makeModels } from './test-models.fixture.js';

let repository: string;
beforeAll(async () => {
  repository = await makeModels();
});
afterEach(stopRunners);

const setup = (options: Partial<RunnerProcessOptions> = {}) => setupIn(repository, options);

describe('a batch', () => {
  test('is one native run, and each unit gets its own rows and metrics', async () => {
    const { load, put, run, answer } = await setup();
    await load('identity-fp32');
    const units = [
      await put('a', row(1, 2, 3, 4)),
      await put('b', [floats('x', [2, 4], 5, 6, 7, 8, 9, 10, 11, 12)]),
    ];
    const report = await run('identity-fp32', units);
    expect(report.runs.map(({ rows }) => rows)).toEqual([3]);
    expect(report.outcomes.every((outcome) => outcome.kind === 'written' && outcome.ok)).toBe(true);
    const { tensors, extras } = await answer('b');
    expect(numbers(tensors[0])).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
    expect(extras.metrics).toMatchObject({ batch_rows: 3, worker_id: 'w', device: 'cpu', provider: 'cpu' });
  });

  test('with rows beyond the limit is run in slices and joined again', async () => {
    const { load, put, run, answer } = await setup();
    await load('identity-fp32', { max_batch_size: 4, instances: 2 });
    const values = Array.from({ length: 44 }, (_, i) => i);
    const report = await run('identity-fp32', [await put('big', [floats('x', [11, 4], ...values)])]);
    expect(report.runs.map(({ rows }) => rows).sort()).toEqual([3, 4, 4]);
    expect(numbers((await answer('big')).tensors[0])).toEqual(values);
  });

  test('of items that differ after all is run in groups', async () => {
    const { load, put, run } = await setup();
    await load('variable-length');
    const units = [5, 12, 7].map((length, i) =>
      put(`u${i}`, [floats('x', [1, length], ...new Array(length).fill(i))]),
    );
    const { runs } = await run('variable-length', await Promise.all(units));
    expect(runs.map(({ rows }) => rows).sort()).toEqual([1, 2]);
  });

  test('drops or fails units that may not run, each for itself', async () => {
    const { load, put, run, answer } = await setup();
    await load('identity-fp32');
    const units = [unit('fenced'), unit('gone'), await put('good', row(1, 2, 3, 4)), unit('expired')];
    const { outcomes } = await run('identity-fp32', units);
    expect(outcomes).toMatchObject([
      { kind: 'dropped', reason: 'fenced' },
      { kind: 'written', ok: false, code: 'payload_missing' },
      { kind: 'written', ok: true },
      { kind: 'written', ok: false, code: 'deadline_exceeded' },
    ]);
    expect((await answer('gone')).extras.error).toMatchObject({ code: 'payload_missing', retryable: true });
  });

  test('whose run fails is reported, not judged: alone says whether it was one unit', async () => {
    const { load, put, run } = await setup();
    await load('fail-on-mark');
    const bad = await put('bad', row(666, 0, 0, 0));
    const good = await put('good', row(1, 0, 0, 0));
    const failed = { kind: 'run_failed', error: { code: 'inference_failed' } };
    expect((await run('fail-on-mark', [bad, good])).outcomes).toMatchObject([
      { ...failed, alone: false },
      { ...failed, alone: false },
    ]);
    expect((await run('fail-on-mark', [bad])).outcomes).toMatchObject([{ ...failed, alone: true }]);
  });

  test('for a model that is not loaded is refused', async () => {
    const { run } = await setup();
    await expect(run('add', [unit('a')])).rejects.toMatchObject({ name: 'ModelNotLoadedError' });
  });
});

describe('trouble', () => {
  test('a poisonous row kills the runner, which is replaced with its models loaded', async () => {
    const { runner, lost, load, put, run } = await setup();
    await load('crash-on-mark');
    const poison = await put('poison', row(777, 0, 0, 0));
    const good = await put('good', row(1, 2, 3, 4));
    const loss = await lossOf(run('crash-on-mark', [good, poison]));
    expect(loss).toMatchObject({
      reason: 'crashed',
      signal: 'SIGKILL',
      wasRunning: true,
      suspect: true,
      suspects: 1,
    });
    expect((await run('crash-on-mark', [good])).outcomes).toMatchObject([{ kind: 'written', ok: true }]);
    expect(lost).toHaveLength(1);
    expect(runner.status()).toMatchObject({ state: 'ready', restarts: 1 });
  });

  test('a run beyond timeout_ms is killed; its neighbour in the runner is no suspect', async () => {
    const { load, put, run } = await setup();
    await load('slow', { timeout_ms: 400 });
    await load('identity-fp32', { timeout_ms: 60_000 });
    const hanging = await put('hang', [...row(1, 2, 3, 4), work(10n ** 15n)]);
    const behind = await put('queued', [...row(1, 2, 3, 4), work(1n)]);
    // In one go: both are in the runner when it is killed.
    const hang = run('slow', [hanging]);
    const queued = run('slow', [behind]);
    const [guilty, innocent] = await Promise.all([lossOf(hang), lossOf(queued)]);
    expect(guilty).toMatchObject({ reason: 'timed_out', suspect: true, suspects: 1 });
    expect(innocent).toMatchObject({ reason: 'crashed', wasRunning: false, suspect: false });
    const { outcomes } = await run('identity-fp32', [await put('after', row(1, 2, 3, 4))]);
    expect(outcomes).toMatchObject([{ kind: 'written', ok: true }]);
  });

  test('a main thread that no longer answers is killed and replaced', async () => {
    const heartbeatMs = 12_345;
    const missedHeartbeats = 4;
    let nextBeat = (): void => {};
    // Hearts beat when the test says so: no busy machine makes a runner look hung.
    const clock: Clock = {
      now: systemClock.now,
      after(ms, callback) {
        if (ms !== heartbeatMs) return systemClock.after(ms, callback);
        nextBeat = callback;
        return () => {};
      },
    };
    const { runner, lost, load, put, run } = await setup({ clock, heartbeatMs, missedHeartbeats });
    await load('identity-fp32');
    process.kill(runner.status().pid as number, 'SIGSTOP');
    const lossOfBatch = lossOf(run('identity-fp32', [await put('a', row(1, 2, 3, 4))]));
    await expect.poll(() => runner.status().batchesInFlight).toBe(1);
    // The first one asks; the others find no answer.
    for (let beat = 0; beat <= missedHeartbeats; beat++) nextBeat();
    const loss = await lossOfBatch;
    expect(loss).toMatchObject({ reason: 'crashed', wasRunning: false });
    expect(lost).toMatchObject([{ reason: 'hung' }]);
    await expect(run('identity-fp32', [await put('b', row(1, 2, 3, 4))])).resolves.toBeDefined();
  });

  test('a model that cannot be loaded says why and leaves the others', async () => {
    const { load, put, run } = await setup();
    await load('identity-fp32');
    await expect(load('corrupt')).rejects.toThrow('not a valid ONNX file');
    await expect(load('add', { harness: 'none' })).rejects.toThrow('there is no harness "none"');
    await expect(run('identity-fp32', [await put('a', row(1, 2, 3, 4))])).resolves.toBeDefined();
  });

  test('stop finishes what runs and leaves no process', async () => {
    const { runner, load, put, run } = await setup();
    await load('slow');
    const last = run('slow', [await put('last', [...row(1, 2, 3, 4), work(2_000n)])]);
    const pid = runner.status().pid as number;
    await new Promise((resolve) => setImmediate(resolve));
    await runner.stop();
    expect((await last).outcomes).toMatchObject([{ kind: 'written', ok: true }]);
    expect(() => process.kill(pid, 0)).toThrow();
  });

  test('a runner whose parent is gone goes, too', async () => {
    const child = fork(builtFile('./runner-child.fixture.js', import.meta.url), {
      serialization: 'advanced',
    });
    child.send({ type: 'init', store: { url: pathToFileURL(tmpdir()).href }, device: 'cpu' });
    await once(child, 'message');
    child.disconnect();
    const [, signal] = await once(child, 'exit');
    expect(signal).toBe('SIGKILL');
  });
});
