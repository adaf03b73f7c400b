/** The report of the samples as a table and a line that sums it up. */
import { milliseconds, plural, seconds } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import type { SampleAnswer } from './sample-answer.js';
import type { SampleReport } from './send-samples.js';

const COLUMNS: readonly Column[] = [
  { title: 'sample', shrinkTo: 10 },
  { title: 'model', shrinkTo: 10 },
  { title: 'answer', shrinkTo: 10 },
  { title: 'score', align: 'right' },
  { title: 'batch', align: 'right' },
  { title: 'queue ms', align: 'right' },
  { title: 'run ms', align: 'right' },
  { title: 'total ms', align: 'right' },
  { title: '' },
];

export function reportLines({ samples, summary }: SampleReport, { colours, width }: Terminal): string[] {
  const { right, wrong, rows, rows_per_s, elapsed_ms, first_answer_ms } = summary;
  const verdict =
    wrong === 0 ? colours.green(`${right} right, 0 wrong`) : colours.red(`${right} right, ${wrong} wrong`);
  const rate = `${plural(rows, 'row')} in ${seconds(elapsed_ms)}, ${Math.round(rows_per_s)} rows/s`;
  const first = first_answer_ms === null ? '' : `; first answer ${seconds(first_answer_ms)} after the start`;
  return [
    '',
    ...tableLines(
      COLUMNS,
      samples.map((sample) => rowOf(sample, colours)),
      { width, paintTitle: colours.dim },
    ),
    ...windowLines(samples).map((line) => colours.dim(line)),
    '',
    `${verdict}; ${rate}${first}`,
    ...samples.filter((sample) => !sample.right).map((sample) => colours.red(faultLine(sample))),
  ];
}

function rowOf(sample: SampleAnswer, { green, red }: Colours): (string | Cell)[] {
  const { answer, right, score, batch_rows, queue_ms, run_ms, total_ms, requests } = sample;
  const mean = requests === 1 ? String(batch_rows?.mean ?? '') : (batch_rows?.mean.toFixed(1) ?? '');
  return [
    sample.sample,
    sample.model,
    requests > 1 ? `${answer}, ${requests} windows` : answer,
    score === null ? '' : score.toFixed(2),
    mean,
    ...[queue_ms, run_ms, total_ms].map((spread) => (spread ? milliseconds(spread.mean) : '')),
    right ? { text: 'ok', paint: green } : { text: 'WRONG', paint: red },
  ];
}

/** A row of a clip stands for all its windows: what its figures are, and the worst among them. */
function windowLines(samples: readonly SampleAnswer[]): string[] {
  const clips = samples.filter((sample) => sample.requests > 1);
  if (clips.length === 0) return [];
  const worst = Math.max(...clips.map((clip) => clip.total_ms?.max ?? 0));
  return [
    `A clip is one request for each 32 ms window: highest score, mean of the other figures; slowest window ${milliseconds(worst)} ms.`,
  ];
}

function faultLine({ sample, model, answer, expected }: SampleAnswer): string {
  return `${sample} (${model}): expected ${expected}, received ${answer}`;
}
