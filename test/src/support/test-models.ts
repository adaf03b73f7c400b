/** The tiny models of test/models in a folder of the test's own. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface ModelWriters {
  makeTestModels(folder: string): Promise<void>;
  makeCrashModel(folder: string): Promise<void>;
  makeGateModel(folder: string): Promise<void>;
}

/** Every tiny model, one whose process is killed where x[i, 0] is 777, and one whose runs gate.ts can hold. */
export async function testModels(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-models-'));
  const { makeTestModels } = (await import(modelFile('make-models.mjs'))) as ModelWriters;
  const { makeCrashModel } = (await import(modelFile('crash-model.mjs'))) as ModelWriters;
  const { makeGateModel } = (await import(modelFile('gate-model.mjs'))) as ModelWriters;
  await makeTestModels(folder);
  await makeCrashModel(folder);
  await makeGateModel(folder);
  return folder;
}

function modelFile(name: string): string {
  return new URL(`../../models/${name}`, import.meta.url).href;
}
