/** The hand-written loop of the bench: an honest rival answers every row, and the comparison sees where one does not. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { classifierPlan } from '../../parts/bulk/plans.js';
import { sameTables } from '../../parts/bulk/same-answers.js';
import { sampleImages } from '../../parts/classifier.js';
import type { PartContext } from '../../parts/part.js';
import { layTabular } from '../../rig/bench-models.js';
import { writeImageList } from '../data/image-list.js';
import { writeTable } from '../data/table-file.js';
import { runBulkLoop } from './loop-job.js';

const folder = mkdtempSync(join(tmpdir(), 'remuda-bulk-loop-'));
const input = join(folder, 'table.parquet');
let modelPath: string;

beforeAll(async () => {
  modelPath = await layTabular(folder, { maxBatchSize: 64, instances: 1, threads: 1, trees: 5 });
  await writeTable(input, 3_000);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function scoredIn(batch: number, table = input): Promise<string> {
  const output = join(folder, `by-${batch}.parquet`);
  const { rows } = await runBulkLoop({ kind: 'table', modelPath, input: table, output, batch, threads: 1 });
  expect(rows).toBeGreaterThan(0);
  return output;
}

it('answers each row of a table once, whatever the batch, and one that is missing is seen', async () => {
  const shorter = join(folder, 'shorter.parquet');
  await writeTable(shorter, 2_999);
  const [all, again, fewer] = await Promise.all([scoredIn(512), scoredIn(700), scoredIn(100, shorter)]);
  await sameTables(all, again);
  await expect(sameTables(all, fewer)).rejects.toThrow(
    '2999 rows where the loop has 3000; 2999 of them have the same answer',
  );
});

it('reads a list of images and says which way up each line stands', async () => {
  const { loopJob, compare } = classifierPlan({ quick: true, full: false } as PartContext);
  const list = join(folder, 'images.txt');
  await writeImageList(list, sampleImages().slice(0, 5), 7);
  const [ones, threes] = [join(folder, 'ones.jsonl'), join(folder, 'threes.jsonl')];
  await runBulkLoop(loopJob({ batch: 1, threads: 1 }, list, ones));
  await runBulkLoop(loopJob({ batch: 3, threads: 1 }, list, threes));
  await compare(ones, threes);
  const labels = readFileSync(ones, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { label: string }).label);
  // The second sample stands upside down; the sixth row is the first image again.
  expect(labels).toEqual(['0', '180', '0', '180', '0', '0', '180']);
});
