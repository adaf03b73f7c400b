/**
 * An older build to begin a rolling upgrade with, out of the history of this checkout: its sources in a folder of their own,
 * with the packages that are installed here, compiled by the compiler that is installed here.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../rig/bench-models.js';

/** The last commit before deadlines to finish, webhooks and API keys: its jobs and records lack what those brought. */
export const OLD_BUILD = '1c57d2d';

/** Why there is no such build; undefined: there can be. */
export function oldBuildObstacle(commit: string): string | undefined {
  if (!existsSync(join(ROOT, '.git'))) return 'this is no git checkout';
  const { status } = git('cat-file', '-e', `${commit}^{commit}`);
  return status === 0 ? undefined : `the history here has no commit ${commit}`;
}

/** Returns the root of the build. @throws Error with what git, tar or the compiler says */
export function makeOldBuild(commit: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, 'source.tar');
  must(git('archive', '--output', archive, commit), 'git archive');
  must(run('tar', ['-xf', archive, '-C', folder]), 'tar');
  linkPackages(folder);
  const projects = ['apps/worker', 'apps/producer-api'].map((name) => join(folder, name));
  must(run(join(ROOT, 'node_modules/.bin/tsc'), ['-b', ...projects], folder), 'tsc');
  return folder;
}

/** The links of each package are relative, so that copies of them lead to the old packages and the installed ones. */
function linkPackages(folder: string): void {
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const group of ['apps', 'packages']) {
    for (const name of readdirSync(join(folder, group))) {
      const links = join(ROOT, group, name, 'node_modules');
      if (!existsSync(links)) continue;
      cpSync(links, join(folder, group, name, 'node_modules'), { recursive: true, verbatimSymlinks: true });
    }
  }
}

type Outcome = ReturnType<typeof run>;

function git(...args: string[]): Outcome {
  return run('git', ['-C', ROOT, ...args]);
}

function run(program: string, args: string[], cwd = ROOT) {
  return spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 });
}

function must({ status, stdout, stderr, error }: Outcome, what: string): void {
  if (status !== 0)
    throw new Error(`${what}: ${error?.message ?? `${stdout}${stderr}`.trim().slice(-2_000)}`);
}
