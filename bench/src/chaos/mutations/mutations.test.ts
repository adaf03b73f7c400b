/**
 * The chaos suite can fail: with the fence taken out, or the sweeper switched off, the very same steps that are green
 * against the real thing are red. No step depends on the speed of the machine: each waits for what the witness sees.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { afterEach, expect, it } from 'vitest';
import { type ChaosFigures, makeReport } from '../chaos-report.js';
import { ChaosRun, type ChaosRunOptions } from '../chaos-run.js';
import { KEY_PREFIX } from '../fleet/chaos-fleet.js';
import type { ProcessSlot } from '../fleet/process-slot.js';
import { layUnfencedScripts } from './unfenced-scripts.js';

const LOCK_MS = 1_000;
const VALUES = [1, 2, 3, 4];
const IDLE_LIMIT_S = Number.POSITIVE_INFINITY;

let run: ChaosRun | undefined;
const folders: string[] = [];

afterEach(async () => {
  await run?.stop();
  run = undefined;
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

async function start(options: Partial<ChaosRunOptions>): Promise<ChaosRun> {
  run = await ChaosRun.start({ workers: 2, apis: 1, lockMs: LOCK_MS, ...options });
  return run;
}

/** A request of the model `held`; it stands in the ledger when this resolves. */
async function accept(id: string): Promise<void> {
  const { client, fleet, ledger } = run as ChaosRun;
  const inputs = { x: { datatype: 'FP32', shape: [1, 4], data: VALUES } };
  const path = '/v1/models/held/requests';
  const answer = await client.call(fleet.apis[0] as ProcessSlot, 'POST', path, {
    body: { request_id: id, inputs },
  });
  expect(answer?.status).toBe(202);
  ledger.accept({
    id,
    model: 'held',
    expected: [{ values: VALUES }],
    items: false,
    deadline: false,
    cancel: false,
  });
}

async function verdict(): Promise<{ figures: ChaosFigures; red: string[] }> {
  const judged = await (run as ChaosRun).judgeAll();
  return makeReport(run as ChaosRun, judged, { seed: 0, skipped: {}, idleLimitS: IDLE_LIMIT_S, seconds: 0 });
}

/** A worker stands still until another has taken its request over, wakes up, and writes before the other has. */
async function wakeUpLate(): Promise<{ figures: ChaosFigures; red: string[] }> {
  const { fleet, witness, fenced } = run as ChaosRun;
  for (const worker of fleet.workers) fleet.hold(worker, true);
  await accept('late');
  const holder = () => witness.requests.get('late')?.holder;
  await expect.poll(holder).toEqual(expect.any(String));
  const first = fleet.workers.find(({ id }) => id === holder()) as ProcessSlot;
  const second = fleet.workers.find((worker) => worker !== first) as ProcessSlot;
  first.freeze();
  await expect.poll(holder).toBe(second.id);
  first.thaw();
  fleet.hold(first, false);
  await expect
    .poll(async () => {
      await fenced.look();
      return fenced.total > 0 || witness.requests.get('late')?.outcomes.size === 1;
    })
    .toBe(true);
  fleet.hold(second, false);
  await (run as ChaosRun).settle(60_000);
  return verdict();
}

it('a worker that wakes up late is fenced: green', async () => {
  await start({});
  const { figures, red } = await wakeUpLate();
  expect(red).toEqual([]);
  expect(figures).toMatchObject({ accepted: 1, terminal: 1, lost: 0, doubled: 0 });
  expect(figures.fenced).toBeGreaterThan(0);
});

it('without the fence the same is red: a result of a worker that had lost the request is shown', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-unfenced-'));
  folders.push(folder);
  await start({ preload: ['scripts-from'], env: { CHAOS_SCRIPTS: layUnfencedScripts(folder) } });
  const { figures, red } = await wakeUpLate();
  expect(figures).toMatchObject({ accepted: 1, lost: 0, doubled: 1 });
  expect(red).toEqual([expect.stringMatching(/^1 doubled: late \(it shows the result of worker-\d-1/)]);
});

/** The job of a request is gone before any worker has seen it. */
async function loseItsJob(patienceMs: number): Promise<{ figures: ChaosFigures; red: string[] }> {
  const { fleet } = run as ChaosRun;
  for (const worker of fleet.workers) worker.freeze();
  await accept('jobless');
  const connection = fleet.redis.redis.duplicate();
  const queue = new Queue('{held/cpu/interactive}', {
    ...{ connection, prefix: `${KEY_PREFIX}:queue`, skipVersionCheck: true },
  });
  expect(await queue.remove('jobless')).toBe(1);
  await queue.close();
  connection.disconnect();
  for (const worker of fleet.workers) worker.thaw();
  await (run as ChaosRun).settle(patienceMs);
  return verdict();
}

/** Ahead by so much that what was accepted just now counts as lost: nobody waits for half a minute. */
const OLD_BY_MS = 60_000;

it('a request whose job is gone is put back by the sweeper: green', async () => {
  // The API may be the sweeper too, and its clock is right.
  await start({ clockOffsetMs: OLD_BY_MS, apiEnv: { REMUDA_API_MAINTENANCE: 'false' } });
  const { figures, red } = await loseItsJob(120_000);
  expect(red).toEqual([]);
  expect(figures).toMatchObject({ accepted: 1, terminal: 1, lost: 0 });
});

it('with the sweeper off the same is red: the request is lost', async () => {
  await start({
    clockOffsetMs: OLD_BY_MS,
    workerEnv: { REMUDA_WORKER_SWEEPER: 'false' },
    apiEnv: { REMUDA_API_MAINTENANCE: 'false' },
  });
  const { figures, red } = await loseItsJob(8_000);
  expect(figures).toMatchObject({ accepted: 1, terminal: 0, lost: 1 });
  expect(red).toEqual(['1 lost: jobless (it has no end)']);
});
