/** Bulk jobs from their creation to their files, by real coordinator processes that are hurt on the way. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { BAD } from '@remuda/core/bulk/coordinator/redis-door.fixture';
import type { BulkJob } from '@remuda/schemas';
import type { BulkHost } from '@remuda/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BulkRig } from './rig.js';

let rig: BulkRig;
let host: BulkHost;
beforeAll(async () => {
  rig = new BulkRig();
  host = await rig.host();
});
afterAll(() => rig?.close());

const count = (rows: number): number[] => Array.from({ length: rows }, (_, i) => i);

function ys(name: string): (number | string)[] {
  return rig
    .text(name)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { y?: number; error?: { code: string } })
    .map(({ y, error }) => error?.code ?? (y as number));
}

/** What the crash of a process leaves nothing of. */
async function kill(id: string): Promise<void> {
  const pid = host.coordinators.get(id);
  if (pid === undefined) return;
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => host.coordinators.get(id)).not.toBe(pid);
}

it('killed again and again it gives the same bytes, each row once', async () => {
  const xs = count(600).map((x) => (x % 97 === 13 ? BAD.row : x));
  const input = rig.rows('k.jsonl', xs);
  const quiet = await rig.create(input, 'quiet.jsonl');
  await rig.status(quiet.id, 'completed');
  const { id } = await rig.create(input, 'killed.jsonl');
  for (let kills = 0; kills < 3; kills++) {
    await rig.until(id, ({ status }) => status !== 'validating');
    await sleep(Math.random() * 60);
    await kill(id);
  }
  const job = await rig.status(id, 'completed');
  expect(rig.text('killed.jsonl')).toBe(rig.text('quiet.jsonl'));
  expect(rig.text('killed.errors.jsonl')).toBe(rig.text('quiet.errors.jsonl'));
  expect(job.request_counts).toEqual({ total: 600, completed: 593, failed: 7 });
});

it('chunks that were under way when it was killed are found again, not run again', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('f.jsonl', count(40)), 'f.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight === 2);
  await kill(id);
  await rig.steer('hold', false);
  const job = await rig.status(id, 'completed');
  expect(job.progress.rows_repeated).toBe(0);
  expect(new Set(await rig.redis.hvals(`${rig.prefix}:door:sent`))).not.toContain('0');
  expect(ys('f.out.jsonl')).toEqual(count(40).map((x) => 2 * x));
});

it('rows before the damage of an input are finished before the job fails', async () => {
  const packed = gzipSync(readFileSync(rig.rows('d.jsonl', count(4))));
  const input = rig.file('cut.jsonl.gz');
  writeFileSync(input, packed.subarray(0, -8));
  await rig.steer('hold', true);
  const { id } = await rig.create(input, 'd.out.jsonl', { id_column: undefined });
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  await rig.steer('hold', false);
  const job = await rig.status(id, 'failed');
  expect(job.reason?.message).toContain('its gzip data is cut off');
  expect(job.request_counts).toMatchObject({ completed: 4, failed: 0 });
});

it('a worker that stops hands its jobs to another, which goes on', async () => {
  await rig.steer('hold', true);
  const { id } = await rig.create(rig.rows('s.jsonl', count(60)), 's.out.jsonl');
  await rig.until(id, ({ progress }) => progress.chunks_in_flight > 0);
  const next = await rig.host();
  await host.stop();
  await rig.steer('hold', false);
  const job: BulkJob = await rig.status(id, 'completed');
  host = next;
  expect(job.progress.rows_repeated).toBe(0);
  expect(ys('s.out.jsonl')).toEqual(count(60).map((x) => 2 * x));
});

it('a worker that sees other files than the fleet takes no jobs, and says so', async () => {
  await rig.host({ filesFolder: rig.file('elsewhere') });
  expect(rig.log.map(({ msg }) => msg)).toContain('this worker coordinates no bulk jobs');
});
