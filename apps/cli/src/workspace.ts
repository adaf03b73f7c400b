/**
 * Where things lie: the checkout that this CLI belongs to (entries of the apps, bundled samples and models), and the
 * project it is used in, whose `.remuda` folder holds Redis' data and the logs.
 */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** This file is apps/cli/dist/workspace.js (or src/workspace.ts in a test): the same depth. */
const checkout = fileURLToPath(new URL('../../../', import.meta.url));

export const apiEntry = join(checkout, 'apps/producer-api/dist/main.js');
export const workerEntry = join(checkout, 'apps/worker/dist/main.js');
export const samplesFolder = join(checkout, 'samples');

export interface Project {
  /** `.remuda` */
  stateFolder: string;
  redisFolder: string;
  logsFolder: string;
}

/** The nearest folder upwards that has been used before, else the nearest with models, else this one. */
export function projectOf(cwd: string, state?: string): Project {
  const root = nearestWith(cwd, '.remuda') ?? nearestWith(cwd, 'models') ?? cwd;
  const stateFolder = state ? resolve(cwd, state) : join(root, '.remuda');
  return { stateFolder, redisFolder: join(stateFolder, 'redis'), logsFolder: join(stateFolder, 'logs') };
}

/** The model repository: the one named, else `models` of the project, else the bundled one. */
export function modelsFolderOf(cwd: string, named: string | undefined): string {
  if (named) return resolve(cwd, named);
  const found = nearestWith(cwd, 'models');
  return join(found ?? checkout, 'models');
}

function nearestWith(folder: string, name: string): string | undefined {
  for (let at = resolve(folder); ; at = dirname(at)) {
    if (existsSync(join(at, name))) return at;
    if (dirname(at) === at) return undefined;
  }
}
