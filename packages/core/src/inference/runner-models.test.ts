/** The life of a model in a runner: verified before it serves, changed, scaled and replaced while batches run. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { floats, lossOf, numbers, row, setup as setupIn, stopRunners, work } from './runner-setup.fixture.js';
import { bundledModels, makeModels, prepareBundled, samples, sourceOf } from './test-models.fixture.js';

let repository: string;
beforeEach(async () => {
  repository = await makeModels();
});
afterEach(async () => {
  await stopRunners();
  await rm(repository, { recursive: true });
});

const setup = () => setupIn(repository);

/** Writes golden cases beside version 1 of a model. */
async function golden(model: string, cases: Record<string, unknown>): Promise<void> {
  const folder = join(repository, model, '1', 'golden');
  await mkdir(folder, { recursive: true });
  for (const [name, content] of Object.entries(cases)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    await writeFile(join(folder, `${name}.json`), text);
  }
}

const fp32 = (shape: number[], ...data: number[]) => ({ datatype: 'FP32', shape, data });

describe('a load', () => {
  test('tells its stages and reports what it cost and how near the golden cases were', async () => {
    await golden('add', {
      exact: { inputs: { a: [1, 2, 3, 4], b: [1, 1, 1, 1] }, outputs: { sum: fp32([1, 4], 2, 3, 4, 5) } },
      near: { inputs: { a: [1, 2, 3, 4], b: [0, 0, 0, 0] }, outputs: { sum: fp32([1, 4], 1.0005, 2, 3, 4) } },
    });
    const { load } = await setup();
    const stages: string[] = [];
    const report = await load('add', {}, { onStage: (stage) => stages.push(stage) });
    expect(stages).toEqual(['loading', 'warming', 'verifying']);
    expect(report).toMatchObject({ provider: 'cpu', golden: { cases: 2 }, signature: { model: 'add' } });
    expect(report.golden.maxAbsError).toBeCloseTo(0.0005, 6);
    // The first load of a process maps the native library.
    expect(report.memoryBytes).toBeGreaterThan(2 ** 20);
    expect(report.loadMs).toBeGreaterThan(0);
  });

  test('of a version without golden cases is one of none', async () => {
    const { load } = await setup();
    expect((await load('add')).golden).toEqual({ cases: 0, maxAbsError: 0 });
  });

  test('runs golden cases with image files through the hooks, as requests are', async () => {
    await prepareBundled();
    const filter = (path: string): boolean => basename(path) !== 'golden';
    const copy = join(repository, 'text-direction');
    await cp(join(bundledModels, 'text-direction'), copy, { recursive: true, filter });
    const label = (text: string) => ({ datatype: 'BYTES', shape: [1], data: [text] });
    await golden('text-direction', {
      upright: { inputs: { image: { file: 'line-1.png' } }, outputs: { label: label('0') } },
    });
    await cp(
      join(samples, 'text-lines', '01-remuda.png'),
      join(repository, 'text-direction', '1', 'golden', 'line-1.png'),
    );
    const { load } = await setup();
    expect((await load('text-direction')).golden.cases).toBe(1);
    await golden('text-direction', {
      upright: { inputs: { image: { file: 'line-1.png' } }, outputs: { label: label('180') } },
    });
    await expect(load('text-direction')).rejects.toThrow(
      'text-direction@1: golden/upright.json: output "label": 1 of 1 elements differ',
    );
  });
});

describe('a golden case that does not hold', () => {
  test('names file, output, error and tolerance; what was loaded before goes on', async () => {
    const { load, put, run, answer } = await setup();
    await load('identity-fp32');
    await golden('identity-fp32', {
      wrong: {
        inputs: { x: [[1, 2]] },
        outputs: { y: fp32([1, 2], 1, 2.5) },
        tolerance: { abs: 0.1, rel: 0 },
      },
    });
    await expect(load('identity-fp32')).rejects.toMatchObject({
      code: 'golden_mismatch',
      message:
        'identity-fp32@1: golden/wrong.json: output "y": 1 of 2 elements differ, the first at 1; max abs error 0.5, max rel error 0.2, allowed abs 0.1 + rel 0 × |expected|',
      details: { file: 'golden/wrong.json', outputs: [{ output: 'y', maxAbsError: 0.5 }] },
    });
    await run('identity-fp32', [await put('a', row(1, 2, 3, 4))]);
    expect(numbers((await answer('a')).tensors[0])).toEqual([1, 2, 3, 4]);
  });

  test('leaves nothing loaded where nothing was', async () => {
    await golden('add', {
      wrong: { inputs: { a: [1, 2, 3, 4], b: [1, 1, 1, 1] }, outputs: { sum: fp32([1, 4], 0, 0, 0, 0) } },
    });
    const { load, put, run } = await setup();
    await expect(load('add')).rejects.toMatchObject({ code: 'golden_mismatch' });
    const unit = await put('a', [floats('a', [1, 4], 1, 2, 3, 4), floats('b', [1, 4], 1, 2, 3, 4)]);
    await expect(run('add', [unit])).rejects.toMatchObject({ name: 'ModelNotLoadedError' });
  });

  test.each([
    [{ inputs: { z: [[1]] }, model_extra: { a: 1 } }, 'inputs.z: expected "x"'],
    [{ inputs: { x: [[1]] }, model_extra: { steps: 3 } }, 'model_extra.steps is missing, expected 3'],
  ])('is told by file and place: %j', async (content, message) => {
    await golden('identity-fp32', { bad: content });
    const { load } = await setup();
    await expect(load('identity-fp32')).rejects.toMatchObject({
      code: 'golden_mismatch',
      message: expect.stringContaining(`identity-fp32@1: golden/bad.json: ${message}`),
    });
  });

  test('after a restart is not asked again: the version was verified', async () => {
    const { runner, load, put, run, lost } = await setup();
    await load('identity-fp32');
    await golden('identity-fp32', { bad: '{' });
    process.kill(runner.status().pid as number, 'SIGKILL');
    const { outcomes } = await run('identity-fp32', [await put('a', row(1, 2, 3, 4))]).catch(async () =>
      run('identity-fp32', [await put('b', row(1, 2, 3, 4))]),
    );
    expect(outcomes).toMatchObject([{ kind: 'written', ok: true }]);
    expect(lost).toHaveLength(1);
  });
});

describe('changed while it is loaded', () => {
  test('the most rows of a run are changed from the next run on, and after a restart', async () => {
    const { runner, lost, load, put, run } = await setup();
    await load('identity-fp32', { max_batch_size: 4 });
    const values = Array.from({ length: 44 }, (_, i) => i);
    const big = await put('big', [floats('x', [11, 4], ...values)]);
    const rows = async () => (await run('identity-fp32', [big])).runs.map((done) => done.rows).sort();
    expect(await rows()).toEqual([3, 4, 4]);
    await runner.configure('identity-fp32@1', { maxBatchSize: 11 });
    expect(await rows()).toEqual([11]);
    process.kill(runner.status().pid as number, 'SIGKILL');
    await expect.poll(() => lost.length).toBe(1);
    expect(await rows()).toEqual([11]);
  });

  test('a model that takes one row at a time goes on doing so', async () => {
    const { runner, load, put, run } = await setup();
    await load('fixed-batch');
    await runner.configure('fixed-batch@1', { maxBatchSize: 8 });
    const units = [await put('a', row(1, 2, 3, 4)), await put('b', row(1, 2, 3, 4))];
    expect((await run('fixed-batch', units)).runs.map(({ rows }) => rows)).toEqual([1, 1]);
  });

  test('instances grow and shrink, the time limit is what was set last, and a restart keeps both', async () => {
    const { runner, load, put, run } = await setup();
    await load('slow', { timeout_ms: 600_000 });
    const hang = async (id: string) =>
      lossOf(run('slow', [await put(id, [...row(1, 2, 3, 4), work(10n ** 12n)])]));
    // How many of three endless runs had begun when the first was killed for its time.
    const begun = async (round: string) => {
      const losses = await Promise.all(['a', 'b', 'c'].map((id) => hang(`${round}-${id}`)));
      expect(losses.filter((loss) => loss.reason === 'timed_out')).not.toEqual([]);
      return losses.filter((loss) => loss.wasRunning).length;
    };
    await runner.configure('slow@1', { timeoutMs: 1_500 });
    expect(await runner.scale('slow@1', 2)).toMatchObject({ instances: 2 });
    expect(await begun('grown')).toBe(2);
    expect(await begun('restarted')).toBe(2);
    expect(await runner.scale('slow@1', 1)).toMatchObject({ instances: 1 });
    expect(await begun('shrunk')).toBe(1);
  });

  test('an instance that is busy finishes before it leaves', async () => {
    const { runner, load, put, run } = await setup();
    await load('slow', { instances: 3 });
    const units = await Promise.all(
      Array.from({ length: 9 }, (_, i) => put(`u${i}`, [...row(i, 2, 3, 4), work(2_000n)])),
    );
    const runs = units.map((unit) => run('slow', [unit]));
    const sizes = [1, 4, 2].map((instances) => runner.scale('slow@1', instances));
    expect((await Promise.all(sizes)).map(({ instances }) => instances)).toEqual([1, 4, 2]);
    for (const { outcomes } of await Promise.all(runs)) expect(outcomes).toMatchObject([{ ok: true }]);
  });

  test('an instance that cannot be loaded changes nothing', async () => {
    const { runner, load, put, run } = await setup();
    await load('identity-fp32');
    await rm(join(repository, 'identity-fp32', '1', 'model.onnx'));
    await expect(runner.scale('identity-fp32@1', 2)).rejects.toThrow('model.onnx is missing');
    const { outcomes } = await run('identity-fp32', [await put('a', row(1, 2, 3, 4))]);
    expect(outcomes).toMatchObject([{ ok: true }]);
  });

  test('what is not loaded cannot be changed', async () => {
    const { runner } = await setup();
    await expect(runner.configure('add@1', { maxBatchSize: 2 })).rejects.toThrow('add@1 is not loaded');
    await expect(runner.scale('add@1', 2)).rejects.toThrow('add@1 is not loaded');
  });
});

/** Sends batches without a pause until it is stopped; every one must be answered. Holds at most 4 at once. */
function traffic({ put, run, answer }: Awaited<ReturnType<typeof setup>>, model: string) {
  const factors = new Map<string, number>();
  let going = true;
  let sent = 0;
  const lane = async (): Promise<void> => {
    while (going) {
      const id = `t${sent++}`;
      const units = [await put(id, row(1, 2, 3, 4))];
      const { outcomes } = await run(model, units);
      expect(outcomes).toMatchObject([{ kind: 'written', ok: true }]);
      const [first, second] = numbers((await answer(id)).tensors[0]);
      expect(second).toBe((first as number) * 2);
      factors.set(id, first as number);
    }
  };
  const lanes = Promise.all(Array.from({ length: 4 }, lane));
  return {
    /** Resolves when `count` more are answered. */
    more: async (count: number) => {
      const wanted = factors.size + count;
      await expect.poll(() => factors.size, { interval: 5, timeout: 20_000 }).toBeGreaterThanOrEqual(wanted);
    },
    /** Sent and answered; how many by each factor. */
    async stop() {
      going = false;
      await lanes;
      const by = (factor: number) => [...factors.values()].filter((value) => value === factor).length;
      return { sent, answered: factors.size, once: by(1), twice: by(2) };
    },
  };
}

describe('under load', () => {
  /** The same modelId with another file behind it: identity gives x, variable-length gives 2x. */
  const sources = (changes: Record<string, unknown> = {}) => {
    const once = { ...sourceOf(repository, 'identity-fp32', changes), modelId: 'm@1' };
    const twice = { ...sourceOf(repository, 'variable-length', { padding: [], ...changes }), modelId: 'm@1' };
    return { once, twice };
  };

  test('a version is replaced in one step: no batch fails, and none runs on the old one afterwards', async () => {
    const all = await setup();
    const { once, twice } = sources({ instances: 2 });
    await all.runner.load(once);
    const load = traffic(all, 'm');
    await load.more(20);
    await all.runner.load(twice);
    const unit = await all.put('after', row(1, 2, 3, 4));
    await all.run('m', [unit]);
    expect(numbers((await all.answer('after')).tensors[0])).toEqual([2, 4, 6, 8]);
    await load.more(20);
    for (let i = 0; i < 6; i++) {
      await all.runner.load(i % 2 === 0 ? once : twice);
      await load.more(5);
    }
    const { sent, answered, once: ones, twice: twos } = await load.stop();
    expect(answered).toBe(sent);
    expect(ones + twos).toBe(sent);
    expect(Math.min(ones, twos)).toBeGreaterThan(0);
    expect(all.lost).toEqual([]);
  });

  test('a replacement that fails leaves the old one serving', async () => {
    const all = await setup();
    const { once } = sources();
    await all.runner.load(once);
    const load = traffic(all, 'm');
    await load.more(5);
    const bad = { ...sourceOf(repository, 'corrupt'), modelId: 'm@1' };
    await expect(all.runner.load(bad)).rejects.toThrow('not a valid ONNX file');
    await load.more(5);
    const { sent, once: ones } = await load.stop();
    expect(ones).toBe(sent);
  });

  test('a restart loads what was loaded last', async () => {
    const all = await setup();
    const { once, twice } = sources();
    await all.runner.load(once);
    await all.runner.load(twice);
    process.kill(all.runner.status().pid as number, 'SIGKILL');
    await expect.poll(() => all.lost.length).toBe(1);
    await all.run('m', [await all.put('a', row(1, 2, 3, 4))]);
    expect(numbers((await all.answer('a')).tensors[0])).toEqual([2, 4, 6, 8]);
  });

  test('unload waits for the batches that are in it, and refuses those that come', async () => {
    const { runner, load, put, run } = await setup();
    await load('slow');
    const units = await Promise.all(
      Array.from({ length: 3 }, (_, i) => put(`u${i}`, [...row(i, 2, 3, 4), work(2_000n)])),
    );
    const order: string[] = [];
    const runs = units.map((unit) => run('slow', [unit]).finally(() => order.push('run')));
    await new Promise((resolve) => setImmediate(resolve));
    const unloaded = runner.unload('slow@1').then(() => order.push('unloaded'));
    await expect(run('slow', [units[0] as (typeof units)[0]])).rejects.toThrow('slow@1 is not loaded');
    await unloaded;
    for (const { outcomes } of await Promise.all(runs)) expect(outcomes).toMatchObject([{ ok: true }]);
    expect(order).toEqual(['run', 'run', 'run', 'unloaded']);
  });

  test('loads and unloads of one model are done in the order of asking', async () => {
    const { runner, load, put, run } = await setup();
    const [, , second] = [load('add'), runner.unload('add@1'), load('identity-fp32'), runner.unload('add@1')];
    await second;
    const unit = await put('a', row(1, 2, 3, 4));
    await expect(run('add', [unit])).rejects.toThrow('add@1 is not loaded');
    await expect(run('identity-fp32', [unit])).resolves.toBeDefined();
  });
});
