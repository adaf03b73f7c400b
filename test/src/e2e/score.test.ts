/**
 * `remuda score --local` as people run it: real processes, a model, files. What is under way when it is stopped is held
 * by the gate of the model `gated`, so nothing depends on how fast the machine is.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  checkout,
  folder,
  leftBehind,
  onLinux,
  project,
  removeProject,
  run,
  start,
  TEST_MS,
  until,
} from '../support/cli-project.js';
import { Gate } from '../support/gate.js';

afterEach(removeProject);

const ROWS = 40;

function lines(path: string): Record<string, unknown>[] {
  const text = readFileSync(join(folder, path), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function gatedModel(): Promise<Gate> {
  const models = join(folder, 'models');
  mkdirSync(models);
  const { makeGateModel } = (await import(join(checkout, 'test/models/gate-model.mjs'))) as {
    makeGateModel(folder: string): Promise<void>;
  };
  await makeGateModel(models);
  const rows = Array.from({ length: ROWS }, (_, i) =>
    JSON.stringify({ custom_id: `r${i}`, x: [i, i + 0.5] }),
  );
  writeFileSync(join(folder, 'rows.jsonl'), `${rows.join('\n')}\n`);
  return new Gate(models);
}

const SCORE = [
  'score',
  '--local',
  '--model',
  'gated',
  '--in',
  'rows.jsonl',
  '--out',
  'scored.jsonl',
  '--chunk-rows',
  '8',
];

/** All of it is there, once, in its order. */
function expectWhole(): void {
  const scored = lines('scored.jsonl');
  expect(scored.map(({ row, custom_id, y }) => [row, custom_id, y])).toEqual(
    Array.from({ length: ROWS }, (_, i) => [i, `r${i}`, [i, i + 0.5]]),
  );
  expect(readdirSync(folder).sort()).toEqual(['.remuda', 'models', 'rows.jsonl', 'scored.jsonl']);
}

/** The coordinator has written down what it does. */
function hasBegun(): boolean {
  return existsSync(join(folder, '.scored.jsonl.remuda'));
}

/** The command that it printed, without "remuda". */
function printedCommand(err: string): string[] {
  const command = /Go on with:\n +remuda (score .*)/.exec(err)?.[1];
  if (command === undefined) throw new Error(`no command to go on with in:\n${err}`);
  return command.split(' ');
}

describe('remuda score --local', () => {
  it('scores images without a server, and leaves an output and nothing else', {
    timeout: TEST_MS,
  }, async () => {
    project();
    const images = join(folder, 'lines');
    mkdirSync(images);
    const samples = readdirSync(join(checkout, 'samples/text-lines')).sort().slice(0, 5);
    for (const name of samples) cpSync(join(checkout, 'samples/text-lines', name), join(images, name));
    writeFileSync(join(images, '03-broken.png'), 'no picture');
    const models = ['--models', join(checkout, 'models')];
    const args = [
      'score',
      '--local',
      '--model',
      'text-direction',
      '--in',
      'lines',
      '--out',
      'turned.jsonl',
      ...models,
    ];
    const { code, out, err } = await run([...args, '--keep', 'path', '--json']);
    expect(err).toContain('ok    starting');
    expect(JSON.parse(out)).toMatchObject({ status: 'completed', exit_code: 5, resume: null });
    expect(code).toBe(5);
    const scored = lines('turned.jsonl');
    expect(scored.map(({ path }) => path)).toEqual([...samples, '03-broken.png'].sort());
    expect(scored.filter(({ error }) => error !== undefined)).toEqual([
      expect.objectContaining({ row: 2, path: '03-broken.png' }),
    ]);
    expect(lines('turned.errors.jsonl')).toEqual([expect.objectContaining({ row: 2 })]);
    expect(readdirSync(folder).sort()).toEqual(['.remuda', 'lines', 'turned.errors.jsonl', 'turned.jsonl']);
    if (onLinux) expect(await leftBehind()).toEqual([]);
  });

  it('pauses on Ctrl-C, and the command that it prints goes on', { timeout: TEST_MS }, async () => {
    project();
    const gate = await gatedModel();
    gate.close();
    const scoring = start(SCORE);
    await until(hasBegun);
    scoring.process.kill('SIGINT');
    await until(() => scoring.err.includes('Pausing'));
    gate.open();
    const { code, err } = await scoring.finished();
    expect(code).toBe(130);
    expect(existsSync(join(folder, 'scored.jsonl'))).toBe(false);
    if (onLinux) expect(await leftBehind()).toEqual([]);
    const again = await run(SCORE);
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining('was not finished') });
    const resumed = await run(printedCommand(err));
    expect(resumed.code).toBe(0);
    expectWhole();
  });

  it.runIf(onLinux)('leaves no process after a kill -9, and goes on', { timeout: TEST_MS }, async () => {
    project();
    const gate = await gatedModel();
    gate.close();
    const scoring = start(SCORE);
    await until(hasBegun);
    scoring.process.kill('SIGKILL');
    gate.open();
    expect(await leftBehind()).toEqual([]);
    const refused = await run(SCORE);
    expect(refused.code).toBe(2);
    expect((await run(printedCommand(refused.err.replace('Go on with it:', 'Go on with:')))).code).toBe(0);
    expectWhole();
  });
});
