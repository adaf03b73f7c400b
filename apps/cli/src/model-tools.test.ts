/** The commands that try models, as they are typed; what they find is tested in core. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setup } from './fake-api.fixture.js';

const example = fileURLToPath(new URL('../../../test/examples/models/celsius', import.meta.url));
const YAML = 'harness: onnx\nmax_batch_size: 3 # guessed\nwarmup: [{ rows: 1 }]\n';

let models: string;
beforeAll(() => {
  models = mkdtempSync(join(tmpdir(), 'remuda-tools-'));
  cpSync(example, join(models, 'celsius'), { recursive: true });
  cpSync(join(example, '1'), join(models, 'celsius/2'), { recursive: true });
  writeFileSync(join(models, 'celsius/model.yaml'), YAML);
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

describe('remuda models', () => {
  it('profile measures, draws, recommends, and writes the recommendation beside the comments', async () => {
    const { run, terminal } = await setup();
    const plot = join(models, 'plot.svg');
    const brief = [
      '--seconds',
      '0.01',
      '--repeats',
      '1',
      '--max-batch',
      '4',
      '--plot',
      plot,
      '--models',
      models,
    ];
    expect(await run(['models', 'profile', 'celsius', '--write', '--json', ...brief])).toBe(0);
    const { settings, recommended, points } = JSON.parse(terminal.answers.join('\n'));
    expect(points.length).toBeGreaterThan(1);
    expect(recommended).toMatchObject(settings);
    const written = readFileSync(join(models, 'celsius/model.yaml'), 'utf8');
    expect(written).toBe(
      `${YAML.replace('3 #', `${settings.max_batch_size} #`)}instances: ${settings.instances}\nintra_op_threads: ${settings.intra_op_threads}\n`,
    );
    expect(readFileSync(plot, 'utf8')).toMatch(/^<svg .*<\/svg>\n$/s);
  }, 60_000);

  it('profile ends with 1 where no setting meets the latency, and says which is quickest', async () => {
    const { run, terminal } = await setup();
    const brief = [
      '--seconds',
      '0.01',
      '--repeats',
      '1',
      '--max-batch',
      '1',
      '--plot',
      join(models, 'p.svg'),
    ];
    expect(
      await run(['models', 'profile', 'celsius', '--models', models, '--latency-ms', '0.000001', ...brief]),
    ).toBe(1);
    expect(terminal.answers.join('\n')).toContain(
      'no setting keeps the p95 of a run below the latency asked for',
    );
  }, 60_000);

  it('validate, add and diff print what was found', async () => {
    const { run, terminal } = await setup();
    expect(await run(['models', 'validate', join(models, 'celsius'), '--version', '1'])).toBe(0);
    expect(terminal.answers.join('\n')).toMatch(/ok {4}batching {2}may be batched: 8 rows/);
    expect(await run(['models', 'add', join(models, 'celsius/1'), '--models', models, '--json'])).toBe(0);
    expect(existsSync(join(models, 'celsius/3/model.onnx'))).toBe(true);
    expect(await run(['models', 'diff', 'celsius', '1', '3', '--models', models])).toBe(0);
    expect(terminal.answers.join('\n')).toMatch(
      /answers\n.*made-up inputs:\n {2}fahrenheit: max abs error 0,/,
    );
  }, 60_000);

  it('manifest lists the files of a folder, and says how to go on', async () => {
    const { run, terminal } = await setup();
    expect(await run(['models', 'manifest', join(models, 'celsius'), '--name', 'celsius'])).toBe(0);
    const { model, files } = JSON.parse(readFileSync(join(models, 'celsius/manifest.json'), 'utf8'));
    expect(model).toBe('celsius');
    expect(files.map(({ path }: { path: string }) => path)).toContain('1/model.onnx');
    expect(terminal.answers.join('\n')).toContain('remuda models register celsius https://');
  });

  it.each([
    [['manifest', '/no/such/folder'], /give the folder of a model/],
    [['validate', '/no/such/folder'], /\/no\/such\/folder/],
    [['add', '/no/such/folder'], /\/no\/such\/folder/],
    [['profile', 'nothing'], /no model "nothing" in .*; there are: celsius/],
    [['diff', 'celsius', 'celsius'], /"celsius" is no version: name@version/],
    [['validate', 'x', '--dims', 'W'], /Expected the name of an axis and its size/],
    [['profile', 'celsius', '--latency-ms', '0'], /Expected a number above 0/],
  ])('%j is wrong usage, and it says why', async (args, why) => {
    const { run, notes } = await setup();
    const named = ['validate', 'manifest'].includes(args[0] as string) ? [] : ['--models', models];
    expect(await run(['models', ...args, ...named])).toBe(2);
    expect(notes()).toMatch(why);
  });
});
