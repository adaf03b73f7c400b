/** `remuda score`, `batches` and `files` against an API of a few lines: what is sent, what comes to the disk, how it ends. */
import { EventEmitter } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BulkJob } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completed, ERRORS, jobWith, OUTPUT } from '../bulk/bulk-answers.fixture.js';
import { commandLine, fakeBulkApi, UPLOADED } from '../bulk/fake-bulk-api.fixture.js';
import { readConfig } from '../config.js';
import { score } from './score.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-score-'));
  writeFileSync(join(folder, 'rows.jsonl'), '{"x": 1}\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ANSWERS = '{"row":0}\n{"row":1}\n';

async function setup(
  looks: BulkJob[],
  files: Record<string, string> = { [OUTPUT]: ANSWERS, [ERRORS]: 'bad\n' },
) {
  const { fake, url } = await fakeBulkApi(looks, files);
  return { fake, ...commandLine(url, folder), url };
}

const SCORE = ['score', '--model', 'add', '--in', 'rows.jsonl', '--out', 'scored.jsonl'];
const PARTIAL = `.scored.jsonl.${OUTPUT}.partial`;
const path = (name: string): string => join(folder, name);
const text = (name: string): string => readFileSync(path(name), 'utf8');

describe('remuda score', () => {
  it('sends the file, follows the job, and puts the output in its place', async () => {
    const { run, fake, answers } = await setup([jobWith(), jobWith(), completed()]);
    const code = await run([
      ...SCORE,
      '--map',
      'x=[a..c]',
      '--keep',
      'id,name',
      '--types',
      'a=int64',
      '--top-k',
      '2',
    ]);
    expect(code).toBe(0);
    expect(fake.files.get(UPLOADED)?.toString()).toContain('filename="rows.jsonl"');
    expect(fake.files.get(UPLOADED)?.toString()).toContain('\r\n\r\n{"x": 1}\n\r\n--');
    expect(fake.files.get(UPLOADED)?.toString()).toMatch(
      /name="expires_after\[seconds\]"\r\n\r\n2592000\r\n/,
    );
    expect(fake.created).toEqual([
      {
        model: 'add',
        input: { file_id: UPLOADED, format: 'jsonl', compression: 'none', types: { a: 'int64' } },
        output: { format: 'jsonl', compression: 'none', keep: ['id', 'name'], top_k: 2 },
        map: { x: '[a..c]' },
      },
    ]);
    expect(text('scored.jsonl')).toBe(ANSWERS);
    expect(readdirSync(folder).sort()).toEqual(['rows.jsonl', 'scored.jsonl']);
    expect(answers()).toContain(path('scored.jsonl'));
  });

  it('ends with 5 where rows failed, and puts them beside the output', async () => {
    const { run, answers } = await setup([completed({ rows_failed: 1 })]);
    expect(await run(SCORE)).toBe(5);
    expect(text('scored.errors.jsonl')).toBe('bad\n');
    expect(answers()).toMatch(/failed +1\n/);
    expect(answers()).toContain(path('scored.errors.jsonl'));
  });

  it('says all of it as one JSON document with --json', async () => {
    const { run, answers } = await setup([completed()]);
    expect(await run([...SCORE, '--json'])).toBe(0);
    expect(JSON.parse(answers())).toMatchObject({
      id: 'batch_1',
      status: 'completed',
      saved: { output: path('scored.jsonl'), errors: null },
      exit_code: 0,
    });
  });

  it('goes on with a download that broke, by Range', async () => {
    const { run, fake } = await setup([completed()]);
    // What is sent but not read yet is lost with its connection.
    const here = (bytes: number) => ({
      when: () => expect.poll(() => statSync(path(PARTIAL), { throwIfNoEntry: false })?.size).toBe(bytes),
    });
    fake.breaks = [
      { bytes: 4, ...here(4) },
      { bytes: 3, ...here(7) },
    ];
    expect(await run(SCORE)).toBe(0);
    expect(fake.ranges).toEqual([undefined, 'bytes=4-', 'bytes=7-']);
    expect(text('scored.jsonl')).toBe(ANSWERS);
  });

  it('leaves nothing under the name of the output where a download does not end', async () => {
    const { run, fake } = await setup([completed()]);
    fake.breaks = Array(50).fill({ bytes: 0, when: async () => {} });
    expect(await run(SCORE)).toBe(3);
    expect(existsSync(path('scored.jsonl'))).toBe(false);
  });

  it.each<[string, BulkJob, number]>([
    ['has failed', jobWith({ status: 'failed' }), 1],
    ['has failed before a row ran', jobWith({ status: 'failed', in_progress_at: null }), 2],
    ['was cancelled', jobWith({ status: 'cancelled' }), 1],
    ['was paused by something else', jobWith({ status: 'paused' }), 4],
  ])('a job that %s has its exit code', async (_, job, code) => {
    const { run } = await setup([job]);
    expect(await run(SCORE)).toBe(code);
    expect(existsSync(path('scored.jsonl'))).toBe(false);
  });

  it('refuses an output that is there before anything is sent; --overwrite takes its place', async () => {
    const { run, fake, notes } = await setup([completed()]);
    writeFileSync(path('scored.jsonl'), 'old');
    writeFileSync(path('scored.errors.jsonl'), 'old');
    expect(await run(SCORE)).toBe(2);
    expect(notes()).toBe(`${path('scored.jsonl')} is there already: give another name, or --overwrite.`);
    expect(fake.calls).toEqual([]);
    expect(await run([...SCORE, '--overwrite'])).toBe(0);
    expect(text('scored.jsonl')).toBe(ANSWERS);
    expect(existsSync(path('scored.errors.jsonl'))).toBe(false);
  });

  it.each([
    [['--workers', '2'], '--workers is about --local; a fleet has its own workers and models.'],
    [
      ['--workers', '2', '--models', 'm'],
      '--workers and --models are about --local; a fleet has its own workers and models.',
    ],
  ])('refuses %j without --local before anything is sent', async (more, told) => {
    const { run, fake, notes } = await setup([completed()]);
    expect(await run([...SCORE, ...more])).toBe(2);
    expect(notes()).toContain(told);
    expect(fake.created).toEqual([]);
  });

  it('--local names the models that there are, before it starts anything', async () => {
    const { run, notes } = await setup([]);
    mkdirSync(path('repository/adder'), { recursive: true });
    writeFileSync(path('repository/adder/model.yaml'), 'harness: onnx\n');
    expect(await run([...SCORE, '--local', '--models', 'repository'])).toBe(2);
    expect(notes()).toBe(`no model "add" in ${path('repository')}; there are: adder`);
    expect(readdirSync(folder).sort()).toEqual(['repository', 'rows.jsonl']);
  });

  it('sends standard input, and images with their names', async () => {
    const { run, fake } = await setup([completed()]);
    expect(
      await run(['score', '--model', 'add', '--in', '-', '--format', 'csv', '--out', 'a.csv'], 'a,b\n1,2\n'),
    ).toBe(0);
    expect(fake.files.get(UPLOADED)?.toString()).toContain('\r\n\r\na,b\n1,2\n\r\n--');
    writeFileSync(path('one.png'), 'picture');
    expect(await run(['score', '--model', 'add', '--in', 'one.png', '--out', 'b.jsonl'])).toBe(0);
    expect(fake.files.get(UPLOADED)?.toString()).toContain(
      '{"custom_id":"one.png","photo":"cGljdHVyZQ=="}\n',
    );
    expect(fake.created[1]).toMatchObject({
      input: { format: 'jsonl' },
      map: { photo: 'photo' },
      id_column: 'custom_id',
    });
  });

  it('leaves addresses and paths of the server to the server', async () => {
    const { run, fake } = await setup([
      jobWith({
        status: 'completed',
        output: { uri: 's3://b/k.csv', errors_uri: null, format: 'csv', compression: 'none' },
      }),
    ]);
    expect(
      await run(['score', '--model', 'add@2', '--in', 'file:///data/a.parquet', '--out', 's3://b/k.csv']),
    ).toBe(0);
    expect(fake.created[0]).toMatchObject({
      version: '2',
      input: { uri: '/data/a.parquet', format: 'parquet' },
      output: { uri: 's3://b/k.csv', format: 'csv' },
    });
  });

  it('detaches, and says how to come back', async () => {
    const { run, notes } = await setup([jobWith()]);
    expect(await run([...SCORE, '--detach'])).toBe(0);
    expect(notes()).toContain('remuda score --resume batch_1 --out scored.jsonl');
  });

  it('comes back to a job that is paused: resumes it, and fetches its output', async () => {
    const { run, fake } = await setup([jobWith({ status: 'paused' }), jobWith(), completed()]);
    expect(await run(['score', '--resume', 'batch_1', '--out', 'scored.jsonl'])).toBe(0);
    expect(fake.calls.slice(0, 2)).toEqual(['GET /v1/batches/batch_1', 'POST /v1/batches/batch_1:resume']);
    expect(text('scored.jsonl')).toBe(ANSWERS);
  });

  it.each([
    [['score', '--in', 'rows.jsonl', '--out', 'o.jsonl'], /--model is missing/],
    [['score', '--model', 'add', '--out', 'o.jsonl'], /--in is missing/],
    [['score', '--model', 'add', '--in', 'rows.jsonl'], /--out is missing/],
    [['score', '--model', 'add', '--in', 'none.csv', '--out', 'o.csv'], /there is no such file/],
    [['score', '--model', 'add', '--in', 'rows.jsonl', '--out', 'o.bin'], /tells no format/],
    [['score', '--model', 'add', '--in', 'rows.jsonl', '--out', 'no/o.csv'], /there is no folder/],
    [[...SCORE, '--max-errors', 'many'], /Expected a number of rows, or a share such as 1%/],
    [[...SCORE, '--types', 'a=int65'], /Expected COLUMN=TYPE/],
    [[...SCORE, '--map', 'x'], /Expected INPUT=COLUMNS, such as 'x=\[f0\.\.f29\]'/],
    [[...SCORE, '--parameters', '[1]'], /Expected a JSON object/],
    [[...SCORE, '--resume', 'batch_1'], /--model and --in cannot stand with --resume/],
    [[...SCORE, '--local', '--detach'], /--detach is about a server/],
    [[...SCORE, '--model', 'Bad Name'], /model/],
  ])('%j is wrong usage, and it says why', async (args, why) => {
    const { run, notes, fake } = await setup([completed()]);
    expect(await run(args)).toBe(2);
    expect(notes()).toMatch(why);
    expect(fake.calls).toEqual([]);
  });
});

describe('Ctrl-C', () => {
  /** Signals when the job is looked at for the first time. */
  async function interrupted(looks: BulkJob[], signals: number) {
    const host = new EventEmitter();
    const { fake, url } = await fakeBulkApi(looks, {});
    const { terminal } = commandLine(url, folder);
    fake.onCall = (call) => {
      if (call === 'GET /v1/batches/batch_1' && fake.calls.filter((one) => one === call).length === 1)
        host.emit('SIGINT');
      // The second comes while the answer to the pause is waited for, which never comes.
      if (!call.endsWith(':pause') || signals < 2) return;
      host.emit('SIGINT');
      return new Promise(() => {});
    };
    const config = readConfig({ REMUDA_URL: url }, folder);
    const options = { model: 'add', in: 'rows.jsonl', out: 'scored.jsonl' };
    const code = await score(options, { terminal, config, stdin: (async function* () {})() }, host);
    return { code, fake, notes: terminal.notes.join('\n'), answers: terminal.answers.join('\n') };
  }

  it('pauses the job, prints the command that goes on, and ends with 130', async () => {
    const { code, fake, notes, answers } = await interrupted([jobWith(), jobWith({ status: 'paused' })], 1);
    expect(code).toBe(130);
    expect(fake.calls.at(-1)).toBe('POST /v1/batches/batch_1:pause');
    expect(answers).toMatch(/^batch_1 {2}paused/);
    expect(notes).toMatch(/Go on with:\n {2}remuda score --resume batch_1 --out scored.jsonl$/);
  });

  it('shows the job once what was under way is finished', async () => {
    const { fake, answers } = await interrupted(
      [jobWith(), jobWith(), jobWith(), jobWith({ status: 'paused' })],
      1,
    );
    expect(fake.calls.slice(-2)).toEqual(['POST /v1/batches/batch_1:pause', 'GET /v1/batches/batch_1']);
    expect(answers).toMatch(/^batch_1 {2}paused/);
  });

  it('a second time leaves at once', async () => {
    const { code, notes } = await interrupted([jobWith()], 2);
    expect(code).toBe(130);
    expect(notes).toMatch(/remuda score --resume batch_1 --out scored.jsonl$/);
  });
});

describe('remuda batches', () => {
  it('lists jobs, and shows one with its devices and its reason', async () => {
    const list = {
      object: 'list',
      data: [jobWith(), completed()],
      first_id: 'a',
      last_id: 'b',
      has_more: true,
    };
    const { run, terminal, notes } = await setup([list as unknown as BulkJob]);
    expect(await run(['batches'])).toBe(0);
    expect(terminal.answers).toMatchInlineSnapshot(`
      [
        "batch    model  status          done     rows  failed  priority  created",
        "batch_1  add@1  in_progress    0.0 %  200,000       0         5  2027-01-15 08:00:00",
        "batch_1  add@1  completed    100.0 %        4       0         5  2027-01-15 08:00:00",
      ]
    `);
    expect(notes()).toContain('--after b');
    const devices = [{ worker_id: 'w1', device: 'cpu', rows: 1_500, device_seconds: 2.25 }];
    const reason = { code: 'disk_full' as const, message: 'no room in /data', retryable: true };
    const job = jobWith({
      status: 'paused',
      reason,
      hint: 'make room, then: remuda batches resume batch_1',
      progress: { rows_done: 1_500, devices, elapsed_s: 4, rows_failed: 2, rows_repeated: 10 },
    });
    const shown = await setup([job]);
    expect(await shown.run(['batches', 'show', 'batch_1'])).toBe(0);
    expect(shown.terminal.answers).toMatchInlineSnapshot(`
      [
        "batch_1  paused  add version 1",
        "  rows            0.8 %  1,500 of 200,000 rows  paused  2 failed",
        "  failed          2",
        "  run again       10 after a crash, or with rows that had failed",
        "  time            4.0 s",
        "  rows/s          375 from beginning to end",
        "  device-seconds  0.0",
        "  priority        5",
        "  worker  device   rows  share  device-seconds",
        "  w1      cpu     1,500  100 %             2.3",
        "  disk_full: no room in /data (may succeed later)",
        "  make room, then: remuda batches resume batch_1",
      ]
    `);
  });

  it.each([
    [['pause', 'batch_1'], 'POST /v1/batches/batch_1:pause'],
    [['resume', 'batch_1'], 'POST /v1/batches/batch_1:resume'],
    [['cancel', 'batch_1'], 'POST /v1/batches/batch_1:cancel'],
    [['retry-failed', 'batch_1'], 'POST /v1/batches/batch_1:retry-failed'],
    [['priority', 'batch_1', '0'], 'PATCH /v1/batches/batch_1'],
  ])('%j is one call', async (args, call) => {
    const { run, fake } = await setup([jobWith()]);
    expect(await run(['batches', ...args])).toBe(0);
    expect(fake.calls).toEqual([call]);
  });

  it('watches one to its end, and ends as `score` would', async () => {
    const { run } = await setup([jobWith(), completed({ rows_failed: 2 })]);
    expect(await run(['batches', 'watch', 'batch_1'])).toBe(5);
  });

  it('fetches an output, or says that there is none yet', async () => {
    const { run } = await setup([completed({ rows_failed: 1 })]);
    expect(await run(['batches', 'output', 'batch_1', '--out', 'o.jsonl'])).toBe(0);
    expect(text('o.jsonl')).toBe(ANSWERS);
    expect(await run(['batches', 'output', 'batch_1', '--errors', '--out', 'e.jsonl'])).toBe(0);
    expect(text('e.jsonl')).toBe('bad\n');
    const flawless = await setup([completed()]);
    expect(await flawless.run(['batches', 'output', 'batch_1', '--errors', '--out', 'n.jsonl'])).toBe(1);
    expect(flawless.notes()).toBe('No row of batch_1 has failed: there is no file of errors.');
    const early = await setup([jobWith()]);
    expect(await early.run(['batches', 'output', 'batch_1', '--out', 'p.jsonl'])).toBe(4);
    expect(early.notes()).toBe('batch_1 is in_progress, and has no output.');
  });
});

describe('remuda files', () => {
  it('uploads, downloads and deletes', async () => {
    const { run, terminal, fake } = await setup([completed()]);
    expect(await run(['files', 'upload', 'rows.jsonl'])).toBe(0);
    expect(terminal.answers).toEqual([UPLOADED]);
    expect(await run(['files', 'download', OUTPUT, '--out', 'down.jsonl'])).toBe(0);
    expect(text('down.jsonl')).toBe(ANSWERS);
    expect(await run(['files', 'upload', 'nowhere.csv'])).toBe(2);
    expect(fake.calls.filter((call) => call.startsWith('POST'))).toHaveLength(1);
    expect(await run(['files', 'delete', OUTPUT])).toBe(0);
    expect(fake.files.has(OUTPUT)).toBe(false);
  });
});
