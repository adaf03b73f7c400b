/** `--dry-run` with an API of a few lines: what it shows, what it sends, and that nothing stays. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelDetail, SignatureTensor } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completed, modelDetail } from './bulk-answers.fixture.js';
import { commandLine, fakeBulkApi, UPLOADED } from './fake-bulk-api.fixture.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-dry-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const tensor = (name: string, shape: (number | string)[]): SignatureTensor => ({
  name,
  datatype: 'FP32',
  shape,
  batch_axis: 0,
  kind: 'tensor',
});
const model: ModelDetail = {
  ...modelDetail,
  signature: {
    ...(modelDetail.signature as NonNullable<ModelDetail['signature']>),
    inputs: [tensor('x', ['N', 3])],
    outputs: [tensor('score', ['N', 1]), tensor('classes', ['N', 10])],
    max_batch_size: 16,
  },
};

async function setup() {
  const { fake, url } = await fakeBulkApi([completed({ rows_done: 4, device_seconds: 0.02 })]);
  fake.model = model;
  const rows = Array.from({ length: 4 }, (_, i) => `${i},${i}.5,1,2,name ${i}`);
  writeFileSync(join(folder, 'rows.csv'), `id,f0,f1,f2,who\n${rows.join('\n')}\n`);
  return { fake, ...commandLine(url, folder) };
}

const DRY = ['score', '--dry-run', '--model', 'add', '--in', 'rows.csv', '--out', 'o.parquet'];

describe('a dry run', () => {
  it('shows input, mapping, output and plan, and writes nothing', async () => {
    const { run, fake, terminal } = await setup();
    const code = await run([...DRY, '--map', 'x=[f0..f2]', '--keep', 'who', '--id-column', 'id', '--argmax']);
    expect(terminal.answers).toMatchInlineSnapshot(`
      [
        "input  csv, 84 bytes",
        "  column  type",
        "  id      by its values",
        "  f0      by its values",
        "  f1      by its values",
        "  f2      by its values",
        "  who     by its values",
        "",
        "mapping  to add version 1",
        "  input  datatype  row  columns   types",
        "  x      FP32      3    [f0..f2]  3 by its values",
        "",
        "output",
        "  column          type",
        "  row             int64     number of the row, from 0",
        "  custom_id       string    from "id"",
        "  who             as it is  kept",
        "  score_argmax    INT64     output",
        "  classes_argmax  INT64     output",
        "  error_code      string    of a row that failed",
        "  error_message   string    of a row that failed",
        "",
        "plan",
        "  4 rows scored as a sample, 0 failed: 200 rows/s",
        "  4 rows in 1 chunk of up to 192 rows, 2 under way at once",
        "  about 0.0 s on 1 instance, 0.0 s of device time",
        "Nothing was written.",
      ]
    `);
    expect(code).toBe(0);
    expect(readdirSync(folder)).toEqual(['rows.csv']);
    expect(fake.created[0]).toMatchObject({
      map: { x: '[f0..f2]' },
      id_column: 'id',
      output: { argmax: true },
    });
    expect([...fake.files.keys()]).not.toContain(UPLOADED);
  });

  it('ends with 2 where the columns do not fit, says what is wrong, and scores nothing', async () => {
    const { run, fake, answers } = await setup();
    expect(await run([...DRY, '--map', 'x=[f0..f7]', '--outputs', 'scores'])).toBe(2);
    const [, problems] = answers().split('It would not run:\n');
    expect(problems).toMatch(
      /map\.x: expected columns for all 8 names of f0\.\.f7.*"f3", "f4", "f5", "f6", "f7"/,
    );
    expect(problems).toMatch(/output\.outputs: the model has no output "scores".*did you mean "score"\?/);
    expect(fake.created).toEqual([]);
  });

  it('gives all of it as JSON', async () => {
    const { run, answers } = await setup();
    expect(await run([...DRY, '--map', 'x=[f0..f2]', '--json'])).toBe(0);
    expect(JSON.parse(answers())).toMatchObject({
      input: {
        format: 'csv',
        columns: [{ name: 'id' }, { name: 'f0' }, { name: 'f1' }, { name: 'f2' }, { name: 'who' }],
      },
      sample: { rows: 4, failed: 0 },
      chunks: { chunk_rows: 192, window: 2, rows_per_s: 200 },
      problems: [],
    });
  });
});
