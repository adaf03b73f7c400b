/**
 * What `--local` remembers of a job beside its output, so that it can go on after anything: its id, and what it was asked
 * for. Redis is begun anew each time; the coordinator finds under the same id what is done already.
 */
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BulkJobCreate, type BulkJobCreateInput } from '@remuda/schemas';
import * as z from 'zod';
import { usageError } from '../cli-error.js';

const LocalRecord = z.strictObject({
  id: z.string(),
  models_folder: z.string(),
  workers: z.int(),
  wanted: BulkJobCreate,
});

export interface LocalRecord {
  id: string;
  modelsFolder: string;
  workers: number;
  wanted: BulkJobCreateInput;
}

const FILE = 'job.json';

export function hasLocalRecord(folder: string): boolean {
  return existsSync(join(folder, FILE));
}

/** On the disk when it returns. */
export async function writeLocalRecord(folder: string, record: LocalRecord): Promise<void> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, FILE);
  const draft = await open(`${path}.new`, 'w');
  try {
    const { id, modelsFolder: models_folder, workers, wanted } = record;
    await draft.writeFile(`${JSON.stringify({ id, models_folder, workers, wanted }, null, 2)}\n`);
    await draft.sync();
  } finally {
    await draft.close();
  }
  await rename(`${path}.new`, path);
}

/** @throws CliError where there is none */
export async function readLocalRecord(folder: string): Promise<LocalRecord> {
  const text = await readFile(join(folder, FILE), 'utf8').catch(() => undefined);
  if (text === undefined)
    throw usageError(`There is no job to go on with: ${folder} is not there. Give the --out of that job.`);
  const { id, models_folder, workers, wanted } = LocalRecord.parse(JSON.parse(text));
  return { id, modelsFolder: models_folder, workers, wanted };
}

export function removeLocalFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 });
}
