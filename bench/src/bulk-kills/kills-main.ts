/** `pnpm bulk-kills`: kills everything that has a hand in a bulk job, and says whether its output is what it would have been. */
import { parseArgs } from 'node:util';
import { runCommand, timedSay, wholeNumber } from '../rig/command.js';
import { type KillReport, runKills } from './run-kills.js';

const HELP = `usage: pnpm bulk-kills [--seed N] [--rows N] [--each N] [--format jsonl|parquet] [--unordered] [--keep] [--json]

  --seed       repeats the order and the moments of the kills; default a new one
  --rows       rows of the table; default 200000
  --each       kills of coordinator, worker, runner and Redis each; default 5
  --format     of the output; default jsonl
  --unordered  rows in the order in which they were done, put in order before they are compared (jsonl alone)
  --keep       leaves the folder with logs and outputs
  --json       prints one object and nothing else
`;

await runCommand(main);

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: process.argv.slice(2).filter((argument) => argument !== '--'),
    options: {
      seed: { type: 'string' },
      rows: { type: 'string', default: '200000' },
      each: { type: 'string', default: '5' },
      format: { type: 'string', default: 'jsonl' },
      unordered: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const format = formatOf(values.format, values.unordered);
  const report = await runKills({
    seed: wholeNumber('--seed', values.seed ?? String(Math.floor(Math.random() * 1_000_000))),
    rows: wholeNumber('--rows', values.rows),
    each: wholeNumber('--each', values.each),
    ...{ format, ordered: !values.unordered, keep: values.keep },
    ...{ batchRows: 250, chunkRows: 2_000, waitMs: 25, lockMs: 2_000 },
    say: timedSay(),
  });
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : textOf(report));
  return report.red.length === 0 ? 0 : 1;
}

function textOf(report: KillReport): string {
  const { seed, rows, kills, identical, missing, doubled, repeated, repeated_told, window, red } = report;
  const struck = Object.entries(kills).map(([target, count]) => `${target} ${count}`);
  return [
    `${rows} rows, seed ${seed}: killed ${struck.join(', ')}`,
    `output ${identical ? 'identical to' : 'DIFFERENT from'} that of an undisturbed run; ${missing} rows missing, ${doubled} doubled`,
    `${repeated} rows were run again (the job says ${repeated_told}); a window is ${window}`,
    `${report.disturbed_s.toFixed(1)} s, undisturbed ${report.undisturbed_s.toFixed(1)} s`,
    ...red.map((reason) => `RED: ${reason}`),
    red.length === 0 ? 'green\n' : `again: pnpm bulk-kills --seed ${seed} --rows ${rows}\n`,
  ].join('\n');
}

function formatOf(text: string, unordered: boolean): 'jsonl' | 'parquet' {
  if (text !== 'jsonl' && text !== 'parquet')
    throw new Error(`--format is ${JSON.stringify(text)}; it must be jsonl or parquet`);
  if (text === 'parquet' && unordered)
    throw new Error('--unordered goes with jsonl: lines can be put in order before they are compared');
  return text;
}
