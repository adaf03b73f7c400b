/**
 * A model repository for one bench: the real models that it needs, copied, with some lines of their model.yaml
 * changed, and the tiny test models. Written into a temporary folder; the checkout's own models stay as they are.
 */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Lines to set in the model.yaml of a real model: `{ max_batch_size: '1' }`. */
export type Overrides = Record<string, string>;

export interface BenchModels {
  /** Real models by name. */
  real?: Record<string, Overrides>;
  /** Names of test/models/make-models.mjs. */
  tiny?: readonly string[];
  /** So many copies of a tiny model, loaded on demand: on-demand-1, … */
  onDemand?: number;
  /** The trees of test/models/tabular-model.mjs, as the model "tabular". */
  tabular?: TabularModel;
  /** Versions of a real model, where it has more than one: copies that differ in a file beside the model. */
  versions?: Record<string, number>;
}

export interface TabularModel {
  maxBatchSize: number;
  instances: number;
  /** intra_op_threads of each. */
  threads: number;
  /** Default 100. */
  trees?: number;
}

export async function makeRepository(
  folder: string,
  { real = {}, tiny = [], onDemand = 0, tabular, versions = {} }: BenchModels,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, overrides] of Object.entries(real)) await copyModel(name, join(folder, name), overrides);
  for (const [name, count] of Object.entries(versions)) await addVersions(join(folder, name), count);
  if (tiny.length > 0) await copyTiny(folder, tiny);
  if (onDemand > 0) await copyOnDemand(folder, onDemand);
  if (tabular) await layTabular(folder, tabular);
}

/** @returns path of its ONNX file */
export async function layTabular(folder: string, model: TabularModel): Promise<string> {
  const { maxBatchSize, instances, threads, trees } = model;
  const more = `instances: ${instances}\nintra_op_threads: ${threads}\n`;
  await makeTabularModel(folder, { maxBatchSize, more, ...(trees === undefined ? {} : { trees }) });
  return join(folder, 'tabular/1/model.onnx');
}

export interface TabularLayout {
  name?: string;
  maxBatchSize?: number;
  trees?: number;
  /** Lines of model.yaml besides. */
  more?: string;
  /** Text of a harness of its own, in place of the onnx kind. */
  harness?: string;
}

export async function makeTabularModel(folder: string, layout: TabularLayout): Promise<void> {
  const script = new URL('../../../test/models/tabular-model.mjs', import.meta.url).href;
  const made = (await import(script)) as { makeTabularModel: typeof makeTabularModel };
  await made.makeTabularModel(folder, layout);
}

/** Path of the ONNX file of a real model, for the raw sides. */
export function modelFile(name: string): string {
  return join(ROOT, 'models', name, '1', 'model.onnx');
}

async function copyModel(name: string, target: string, overrides: Overrides): Promise<void> {
  await cp(join(ROOT, 'models', name), target, { recursive: true, dereference: true });
  const file = join(target, 'model.yaml');
  let text = await readFile(file, 'utf8');
  for (const [key, value] of Object.entries(overrides)) {
    const line = new RegExp(`^${key}:.*$`, 'm');
    text = line.test(text) ? text.replace(line, `${key}: ${value}`) : `${text}\n${key}: ${value}\n`;
  }
  await writeFile(file, text);
}

async function addVersions(folder: string, count: number): Promise<void> {
  for (let version = 2; version <= count; version++) {
    await cp(join(folder, '1'), join(folder, String(version)), { recursive: true });
    await writeFile(join(folder, String(version), 'version.txt'), `${version}\n`);
  }
}

async function copyTiny(folder: string, names: readonly string[]): Promise<void> {
  const all = `${folder}.tiny`;
  const script = new URL('../../../test/models/make-models.mjs', import.meta.url).href;
  const { makeTestModels } = (await import(script)) as {
    makeTestModels(directory: string): Promise<string[]>;
  };
  await makeTestModels(all);
  for (const name of names) await cp(join(all, name), join(folder, name), { recursive: true });
  await rm(all, { recursive: true });
}

async function copyOnDemand(folder: string, count: number): Promise<void> {
  await copyTiny(folder, ['identity-fp32']);
  const pattern = join(folder, 'identity-fp32');
  const yaml = await readFile(join(pattern, 'model.yaml'), 'utf8');
  for (let i = 1; i <= count; i++) {
    const target = join(folder, `on-demand-${i}`);
    await cp(pattern, target, { recursive: true });
    await writeFile(join(target, 'model.yaml'), `${yaml}\nload_mode: on_demand\n`);
  }
  await rm(pattern, { recursive: true });
}
