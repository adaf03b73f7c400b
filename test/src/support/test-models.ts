/** The tiny models of test/models in a folder of the test's own. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface ModelWriters {
  makeTestModels(folder: string): Promise<void>;
  makeCrashModel(folder: string): Promise<void>;
  makeGateModel(folder: string): Promise<void>;
  makeFlakyModel(folder: string): Promise<void>;
}

/**
 * Every tiny model, one whose process is killed where x[i, 0] is 777, one whose runs gate.ts can hold, and one that
 * fails for a while where x[i, 0] is 13.
 */
export async function testModels(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-models-'));
  const { makeTestModels } = (await import(modelFile('make-models.mjs'))) as ModelWriters;
  const { makeCrashModel } = (await import(modelFile('crash-model.mjs'))) as ModelWriters;
  const { makeGateModel } = (await import(modelFile('gate-model.mjs'))) as ModelWriters;
  const { makeFlakyModel } = (await import(modelFile('flaky-model.mjs'))) as ModelWriters;
  await makeTestModels(folder);
  await makeCrashModel(folder);
  await makeGateModel(folder);
  await makeFlakyModel(folder);
  return folder;
}

function modelFile(name: string): string {
  return new URL(`../../models/${name}`, import.meta.url).href;
}
