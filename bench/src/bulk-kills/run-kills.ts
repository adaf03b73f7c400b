/**
 * A bulk job that nobody disturbs, and the same job while coordinator, worker, runner and Redis are killed with kill -9 in
 * turn: the outputs must be the same to the byte, each row must be there once, and no more may have been run again than
 * one window for each kill.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BulkJob, isBulkTerminal } from '@remuda/schemas';
import { KillFleet } from './kill-fleet.js';
import { type Kill, type KillTarget, makeKillPlan } from './kill-plan.js';
import { type OutputFacts, outputFacts } from './output-check.js';

export interface KillOptions {
  seed: number;
  rows: number;
  /** Kills of each target. */
  each: number;
  format: 'jsonl' | 'parquet';
  ordered: boolean;
  batchRows: number;
  chunkRows: number;
  /** Before each run of a batch. */
  waitMs: number;
  lockMs: number;
  /** Leaves the folder with logs and outputs. */
  keep?: boolean;
  say?(line: string): void;
}

export interface KillReport {
  seed: number;
  rows: number;
  kills: Record<KillTarget, number>;
  /** Outputs are the same to the byte, after ordering where they are not ordered. */
  identical: boolean;
  missing: number;
  doubled: number;
  /** Runs of rows beyond the first of each, as the model saw them. */
  repeated: number;
  /** The same as the job says. */
  repeated_told: number;
  /** Rows that may be under way at once. */
  window: number;
  undisturbed_s: number;
  disturbed_s: number;
  /** What is wrong; empty: all is well. */
  red: string[];
}

/** Chunks under way for each device: one runs, one is ready. */
const WINDOW_CHUNKS = 2;
/** Longest time from the row that a kill waits for to the kill itself, in batches. */
const MOST_DELAY_BATCHES = 4;
const LOOK_EVERY_MS = 10;
/** A folder that is not gone by then stays. */
const GONE_MS = 20_000;
/** Nothing is begun, killed or ended for so long. */
const PATIENCE_MS = 120_000;

export async function runKills(options: KillOptions): Promise<KillReport> {
  const { say = () => {} } = options;
  const site = await KillFleet.start({ keep: false, ...options });
  try {
    const quiet = await score(site, options, 'undisturbed', []);
    say(`undisturbed: ${quiet.seconds.toFixed(1)} s`);
    const plan = makeKillPlan({ ...options, mostDelayMs: MOST_DELAY_BATCHES * options.waitMs });
    const hurt = await score(site, options, 'disturbed', plan);
    say(`disturbed: ${hurt.seconds.toFixed(1)} s`);
    return report(options, quiet, hurt);
  } finally {
    await site.stop();
  }
}

interface Scored {
  facts: OutputFacts;
  job: BulkJob;
  kills: Kill[];
  /** Rows run beyond the first time. */
  repeated: number;
  covered: number;
  seconds: number;
  /** Its work folder is still there. */
  leftBehind: boolean;
}

async function score(
  site: KillFleet,
  options: KillOptions,
  name: string,
  plan: readonly Kill[],
): Promise<Scored> {
  const { rows, format, ordered, chunkRows } = options;
  const output = join(site.fleet.folder, `${name}.${format}`);
  const from = site.witness.end;
  const begun = performance.now();
  const { id } = await site.bulk.create({
    model: 'tabular',
    input: { uri: site.input },
    output: { uri: output, keep: ['id'], unordered: !ordered },
    map: { x: '[f0..f29]' },
    chunk_rows: chunkRows,
  });
  const kills: Kill[] = [];
  for (const kill of plan) if (await strike(site, { id, from, kill, options })) kills.push(kill);
  const job = await untilEnded(site, id);
  const seconds = (performance.now() - begun) / 1000;
  if (job.status !== 'completed')
    throw new Error(`the ${name} job is ${job.status}: ${JSON.stringify(job.reason)}`);
  const leftBehind = !(await isGone(workFolderOf(output)));
  const { covered, repeated } = site.witness.coverage(from);
  return {
    facts: await outputFacts(output, rows, ordered),
    job,
    kills,
    repeated,
    covered,
    seconds,
    leftBehind,
  };
}

/** As docs/bulk.md names it. */
function workFolderOf(output: string): string {
  return join(dirname(output), `.${basename(output)}.remuda`);
}

/** It goes when the job has ended, not before. */
async function isGone(folder: string): Promise<boolean> {
  for (const until = Date.now() + GONE_MS; Date.now() < until; await sleep(LOOK_EVERY_MS))
    if (!existsSync(folder)) return true;
  return false;
}

interface Blow {
  id: string;
  from: number;
  kill: Kill;
  options: KillOptions;
}

/** @returns false: the job had ended before */
async function strike(site: KillFleet, { id, from, kill, options }: Blow): Promise<boolean> {
  const until = Date.now() + PATIENCE_MS;
  for (let covered = -1; ; await sleep(LOOK_EVERY_MS)) {
    const now = site.witness.coverage(from).covered;
    if (now >= kill.atRows) break;
    if (now === covered && Date.now() > until) throw new Error(`nothing goes on behind row ${covered}`);
    covered = now;
  }
  await sleep(kill.delayMs);
  if (isBulkTerminal((await site.bulk.get(id)).status)) return false;
  const { covered } = site.witness.coverage(from);
  options.say?.(`kill -9 ${kill.target} (${covered} of ${options.rows} rows begun)`);
  await site.kill(kill.target);
  return true;
}

async function untilEnded(site: KillFleet, id: string): Promise<BulkJob> {
  let last = '';
  let changedAt = Date.now();
  for (;;) {
    const job = await site.bulk.get(id);
    if (isBulkTerminal(job.status)) return job;
    const state = JSON.stringify([job.status, job.progress.rows_done, site.witness.end]);
    if (state !== last) changedAt = Date.now();
    last = state;
    if (Date.now() - changedAt > PATIENCE_MS) throw new Error(`nothing goes on: ${JSON.stringify(job)}`);
    await sleep(LOOK_EVERY_MS);
  }
}

function report(options: KillOptions, quiet: Scored, hurt: Scored): KillReport {
  const { seed, rows, chunkRows, each } = options;
  const kills = { coordinator: 0, worker: 0, runner: 0, redis: 0 };
  for (const { target } of hurt.kills) kills[target]++;
  const found = {
    ...{ seed, rows, kills, window: WINDOW_CHUNKS * chunkRows },
    identical: quiet.facts.digest === hurt.facts.digest,
    ...{ missing: hurt.facts.missing, doubled: hurt.facts.doubled },
    ...{ repeated: hurt.repeated, repeated_told: hurt.job.progress.rows_repeated },
    ...{ undisturbed_s: quiet.seconds, disturbed_s: hurt.seconds },
  };
  const checks: [boolean, string][] = [
    [quiet.repeated === 0, `${quiet.repeated} rows were run again where nobody disturbed`],
    [quiet.facts.missing + quiet.facts.doubled === 0, 'the undisturbed output has not each row once'],
    [hurt.covered === rows, `${rows - hurt.covered} rows were never run`],
    [found.identical, 'the outputs differ'],
    [found.missing === 0, `${found.missing} rows are missing`],
    [found.doubled === 0, `${found.doubled} rows are there twice`],
    [!quiet.leftBehind && !hurt.leftBehind, 'a work folder was left behind'],
    [hurt.job.progress.rows_failed === 0, `${hurt.job.progress.rows_failed} rows have failed`],
    [
      found.repeated <= hurt.kills.length * found.window,
      `${found.repeated} rows were run again: more than ${found.window} for each of ${hurt.kills.length} kills`,
    ],
    [
      hurt.kills.length === 4 * each,
      `only ${hurt.kills.length} of ${4 * each} kills found the job under way`,
    ],
  ];
  return { ...found, red: checks.flatMap(([ok, reason]) => (ok ? [] : [reason])) };
}
