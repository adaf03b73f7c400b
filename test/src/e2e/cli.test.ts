/** `remuda` as people run it: real processes, a Redis of its own in a temporary project (support/cli-project.ts). */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Cli,
  checkout,
  environment,
  folder,
  isThere,
  leftBehind,
  onLinux,
  pidOf,
  processesInProject,
  project,
  removeProject,
  remuda,
  run,
  start,
  TEST_MS,
  until,
} from '../support/cli-project.js';

/** Up with one tiny model: ready soon. */
async function startSmallFleet(workers = 1): Promise<Cli> {
  const models = join(folder, 'models');
  const { makeTestModels } = (await import(join(checkout, 'test/models/make-models.mjs'))) as {
    makeTestModels(directory: string): Promise<string[]>;
  };
  await makeTestModels(models);
  return start(['up', '--api-port', '0', '--workers', String(workers)], { REMUDA_WORKER_MODELS: 'add' });
}

afterEach(removeProject);

describe('remuda up', () => {
  it('answers every sample rightly, ends with 0, and leaves nothing behind', {
    timeout: TEST_MS,
  }, async () => {
    project();
    const models = join(checkout, 'models');
    const { code, out, err } = await run([
      'up',
      '--once',
      '--samples',
      '--json',
      '--api-port',
      '0',
      '--models',
      models,
    ]);
    expect(err).toContain('ok    samples');
    const { samples, summary } = JSON.parse(out);
    expect(samples.filter((sample: { right: boolean }) => !sample.right)).toEqual([]);
    expect(summary).toMatchObject({ right: 50, wrong: 0, first_answer_ms: expect.any(Number) });
    // How many share one depends on the machine.
    const batches = samples.map((sample: { batch_rows: { max: number } }) => sample.batch_rows.max);
    expect(Math.min(...batches)).toBeGreaterThanOrEqual(1);
    expect(code).toBe(0);
    expect(readdirSync(join(folder, '.remuda/logs'))).toEqual(
      expect.arrayContaining(['api.log', 'worker-1.log']),
    );
    if (onLinux) expect(await leftBehind()).toEqual([]);
  });

  it('ends with 1 when the models of the samples are not there', { timeout: TEST_MS }, async () => {
    project();
    mkdirSync(join(folder, 'models'));
    const { code, out } = await run(['up', '--once', '--samples', '--json', '--api-port', '0']);
    expect(JSON.parse(out).summary).toMatchObject({ right: 0, wrong: 50, first_answer_ms: null });
    expect(JSON.parse(out).samples[0].answer).toMatch(/^model_not_found/);
    expect(code).toBe(1);
  });

  it('says which child did not start and why, and ends with 1', { timeout: TEST_MS }, async () => {
    project();
    mkdirSync(join(folder, 'models'));
    const { code, err } = await run(['up', '--once', '--api-port', '0'], { REMUDA_WORKER_LOCK_MS: 'long' });
    expect(err).toMatch(/worker 1 ended with code 1; its log is \S+worker-1\.log, which says:/);
    expect(err).toContain('REMUDA_WORKER_LOCK_MS');
    expect(code).toBe(1);
    if (onLinux) expect(await leftBehind()).toEqual([]);
  });
});

describe.runIf(onLinux)('the end of remuda up', () => {
  it('on Ctrl-C is orderly: exit code 0, and no process is left', { timeout: TEST_MS }, async () => {
    project();
    const up = await startSmallFleet(2);
    await up.url();
    const commands = [...processesInProject().values()].join('\n');
    for (const part of ['producer-api', 'worker/dist', 'redis-server']) expect(commands).toContain(part);
    up.process.kill('SIGINT');
    expect(await up.ended).toBe(0);
    expect(await leftBehind()).toEqual([]);
  });

  it('on a second Ctrl-C is immediate, and no process is left either', { timeout: TEST_MS }, async () => {
    project();
    const up = await startSmallFleet();
    await up.url();
    // A worker that hangs would hold up an orderly stop.
    process.kill(pidOf('worker/dist'), 'SIGSTOP');
    up.process.kill('SIGINT');
    // The API goes first: with it the first signal is known to have been heard.
    await until(() => !isThere('producer-api'));
    expect(up.process.exitCode).toBeNull();
    up.process.kill('SIGINT');
    expect(await up.ended).toBe(130);
    expect(await leftBehind()).toEqual([]);
  });

  it('on Ctrl-C while it starts leaves no process', { timeout: TEST_MS }, async () => {
    project();
    // A worker that never gets ready, so that the start is not over before the signal comes.
    const model = join(folder, 'models/endless');
    mkdirSync(join(model, '1'), { recursive: true });
    writeFileSync(join(model, 'model.yaml'), 'harness: ./harness.mjs\n');
    writeFileSync(join(model, '1/model.onnx'), '');
    writeFileSync(join(model, 'harness.mjs'), `setInterval(() => {}, 1_000); await new Promise(() => {});\n`);
    const up = start(['up', '--api-port', '0']);
    await until(() => up.err.includes('started Redis') && isThere('worker/dist'));
    up.process.kill('SIGINT');
    expect(await up.ended).toBe(130);
    expect(up.err).not.toContain('Remuda is up');
    expect(await leftBehind()).toEqual([]);
  });

  it('by kill -9 leaves no process after a few seconds', { timeout: TEST_MS }, async () => {
    project();
    const up = await startSmallFleet();
    await up.url();
    up.process.kill('SIGKILL');
    await up.ended;
    expect(await leftBehind()).toEqual([]);
  });

  it('by kill -9 of the process that started it leaves none', { timeout: TEST_MS }, async () => {
    project();
    // As infra/setup/start.mjs does it.
    const script = `require('node:child_process').spawn(process.execPath, process.argv.slice(1),
      { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })`;
    mkdirSync(join(folder, 'models'));
    const starter = new Cli(
      spawn(process.execPath, ['-e', script, remuda, 'up', '--api-port', '0'], {
        cwd: folder,
        env: environment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    await starter.url();
    starter.process.kill('SIGKILL');
    expect(await leftBehind()).toEqual([]);
  });

  it('comes with that of the API, with 1 and the reason', { timeout: TEST_MS }, async () => {
    project();
    const up = await startSmallFleet();
    await up.url();
    process.kill(pidOf('producer-api'), 'SIGKILL');
    const { code, err } = await up.finished();
    expect(err).toMatch(/API ended with SIGKILL; its log is \S+api\.log/);
    expect(code).toBe(1);
    expect(await leftBehind()).toEqual([]);
  });
});

describe.runIf(onLinux)('a fleet under remuda up', () => {
  it('gets a dead worker back, and answers the other commands', { timeout: TEST_MS }, async () => {
    project();
    const up = await startSmallFleet();
    const url = ['--url', await up.url()];
    process.kill(pidOf('worker/dist'), 'SIGKILL');
    await until(() => up.err.includes('worker 1 is ready again'));
    expect(up.err).toContain('worker 1 ended with SIGKILL');

    const inputs = ['--input', 'a=[[1,2,3,4]]', '--input', 'b=[[1,1,1,1]]'];
    const answered = await run(['submit', 'add', ...inputs, '--wait', '60', '--json', ...url]);
    expect(JSON.parse(answered.out)).toMatchObject({
      status: 'succeeded',
      outputs: { sum: { data: [2, 3, 4, 5] } },
    });
    expect(answered.code).toBe(0);

    const id: string = JSON.parse(answered.out).request_id;
    const saved = await run(['result', id, '--save', 'saved', ...url]);
    expect(saved.out).toContain('sum [2, 3, 4, 5]');
    expect(readdirSync(join(folder, 'saved')).sort()).toEqual(['result.json', 'sum.npy']);

    const refused = await run(
      ['submit', 'add', '-', ...url],
      {},
      '{"inputs": {"a": [[1, 2]], "b": 1}, "x": 1}',
    );
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('invalid_request (422)') });
    const unknown = await run(['submit', 'ad', ...inputs, ...url]);
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining('did you mean add') });
    expect(await run(['result', 'req_unknown', ...url])).toMatchObject({ code: 1 });

    const models = await run(['models', 'show', 'add', ...url]);
    expect(models.out).toMatch(/takes +a +FP32 +\[N, 4\] +0/);
    const fleet = await run(['fleet', ...url]);
    expect(fleet.out).toMatch(/ready +ok +cpu +1 ready/);
    const doctor = await run(['doctor', '--json', ...url]);
    expect(JSON.parse(doctor.out).findings).toContainEqual(
      expect.objectContaining({ check: 'api', status: 'ok', detail: expect.stringContaining('is ready') }),
    );

    up.process.kill('SIGTERM');
    expect(await up.ended).toBe(0);
  });
});

describe('remuda doctor', () => {
  it('names each fault of a broken repository with its remedy, and ends with 1', {
    timeout: TEST_MS,
  }, async () => {
    project();
    const model = join(folder, 'models/broken');
    mkdirSync(join(model, '1'), { recursive: true });
    writeFileSync(join(model, 'model.yaml'), 'harness: onnx\nmax_batch: 4\n');
    const corrupt = join(folder, 'models/corrupt');
    mkdirSync(join(corrupt, '1'), { recursive: true });
    writeFileSync(join(corrupt, 'model.yaml'), 'harness: onnx\n');
    writeFileSync(join(corrupt, '1/model.onnx'), 'noise');

    const { code, out } = await run(['doctor', '--load', '--url', 'http://127.0.0.1:1']);
    expect(out).toMatch(/fail {2}model broken +broken\/model\.yaml:2: .*max_batch/);
    expect(out).toMatch(/fail {2}model corrupt +.*not a valid ONNX file/);
    expect(out).toMatch(/→ Correct it/);
    expect(out).toMatch(/ok {4}native library/);
    expect(out).toMatch(/warn {2}api +nothing answers at http:\/\/127\.0\.0\.1:1/);
    expect(code).toBe(1);
  });

  it('is content with a repository that is whole', { timeout: TEST_MS }, async () => {
    project();
    const args = ['doctor', '--json', '--models', join(checkout, 'models'), '--url', 'http://127.0.0.1:1'];
    const { code, out } = await run(args);
    const { ok, findings } = JSON.parse(out);
    expect(findings.filter((finding: { status: string }) => finding.status === 'fail')).toEqual([]);
    expect({ ok, code }).toEqual({ ok: true, code: 0 });
  });
});
