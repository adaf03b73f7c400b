/**
 * Versions come one after another while requests come in: each goes to a version that is ready, none fails, none is lost
 * and none is run twice. REMUDA_TEST_SWAPS=20 for the long form.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InferenceResult } from '@remuda/schemas';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';
import { addVersion } from '../support/versions.js';

const MODEL = 'identity-fp32';
const SWAPS = Number(process.env.REMUDA_TEST_SWAPS ?? 3);
const EVERY_MS = 10;

let models: string;
let fleet: Fleet;

beforeAll(async () => {
  models = await testModels();
  fleet = await Fleet.start({ models, workers: 2, env: { REMUDA_WORKER_MODELS: MODEL } });
}, 60_000);
afterAll(async () => {
  await fleet?.stop();
  rmSync(models, { recursive: true, force: true });
});

interface Sent {
  value: number;
  answer: Promise<InferenceResult>;
}

/** Sends one request after another, each with a value of its own, until told to stop. */
function load(): { stop(): Promise<Sent[]> } {
  const sent: Sent[] = [];
  let going = true;
  const loop = (async () => {
    for (let value = 0; going; value++) {
      const inputs = { x: { datatype: 'FP32', shape: [1, 1], data: [value] } };
      const answer = fleet.api.runToEnd(MODEL, { request_id: `swap-${value}`, inputs });
      answer.catch(() => {});
      sent.push({ value, answer });
      await sleep(EVERY_MS);
    }
  })();
  return {
    async stop() {
      going = false;
      await loop;
      return sent;
    },
  };
}

async function untilVersion(version: number): Promise<void> {
  const inputs = { x: { datatype: 'FP32', shape: [1, 1], data: [0] } };
  for (;;) {
    const result = await fleet.api.runToEnd(MODEL, { inputs });
    if (result.version === String(version)) return;
    await sleep(50);
  }
}

it(`${SWAPS} swaps under load: every request succeeds, on one version, once`, async () => {
  const running = load();
  for (let version = 2; version <= SWAPS + 1; version++) {
    await addVersion(models, MODEL, 1, version);
    await untilVersion(version);
  }
  const sent = await running.stop();
  const versions: number[] = [];
  for (const { value, answer } of sent) {
    const result = await answer;
    expect(result.status, JSON.stringify(result.error)).toBe('succeeded');
    expect(result.outputs?.y?.data).toEqual([value]);
    versions.push(Number(result.version));
  }
  const ended = await fleet.api.settle(60);
  expect([...ended.values()].every((status) => status === 'succeeded')).toBe(true);
  expect(new Set(versions)).toEqual(new Set(Array.from({ length: SWAPS + 1 }, (_, i) => i + 1)));
  // What one worker refused because another had overtaken it would be a second run.
  expect(fleet.logLines().filter((line) => line.includes('"event":"fenced"'))).toEqual([]);
  const again = fleet.logLines().filter((line) => line.includes('"event":"picked_up"'));
  const ids = again.map((line) => (JSON.parse(line) as { request_id: string }).request_id);
  expect(ids.length - new Set(ids).size).toBe(0);
}, 240_000);
