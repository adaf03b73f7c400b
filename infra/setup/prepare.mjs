// Makes a checkout runnable: Node's version, packages, build, models. Plain Node, because nothing is installed yet.
// Invariant: when nothing changed it does nothing but look (well under 300 ms), and two at once do not trample
// each other (.remuda/setup.lock). Called by start.mjs and test.mjs; alone: node infra/setup/prepare.mjs [--verbose]
import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withLock } from './process-lock.mjs';
import { runCommand, stopOnSignal } from './run-command.mjs';
import { isBuilt, isInstalled, manifestStamp, readStamps, sourceStamp, writeStamps } from './stamps.mjs';
import { step } from './step.mjs';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const stateDir = join(root, '.remuda');
const stampPath = join(stateDir, 'setup.json');
const NODE_FLOOR = [20, 19];

export async function prepare({ log = console.log, verbose = false } = {}) {
  checkNode();
  const onWait = (pid) => log(`waiting for another set-up (process ${pid})`);
  return withLock(
    join(stateDir, 'setup.lock'),
    async () => {
      const installed = await installPackages({ log, verbose });
      const built = await build({ log, verbose });
      await prepareModels();
      return { installed, built };
    },
    { onWait },
  );
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NODE_FLOOR[0] || (major === NODE_FLOOR[0] && minor >= NODE_FLOOR[1])) return;
  throw new Error(
    `Remuda needs Node ${NODE_FLOOR.join('.')} or later; this is Node ${process.versions.node}.\n` +
      'Install a newer one (nodejs.org, your package manager, or a version manager: nvm install 22), then start again.',
  );
}

async function installPackages({ log, verbose }) {
  const manifests = manifestStamp(root);
  if (isInstalled(root) && readStamps(stampPath).manifests === manifests) return false;
  await step(
    'packages',
    () =>
      run(
        'npx',
        ['--yes', pinnedPnpm(), 'install', '--frozen-lockfile', '--config.confirmModulesPurge=false'],
        { verbose },
      ),
    log,
  );
  writeStamps(stampPath, { manifests });
  return true;
}

async function build({ log, verbose }) {
  const sources = sourceStamp(root);
  const stamps = readStamps(stampPath);
  if (isBuilt(root) && stamps.sources === sources) return false;
  await step('build', () => run(join(root, 'node_modules/.bin/tsc'), ['-b'], { verbose }), log);
  writeStamps(stampPath, { ...stamps, sources });
  return true;
}

/** Looks for missing model files each time: they may be deleted without any source changing. */
async function prepareModels() {
  const script = join(root, 'models/prepare.mjs');
  if (!existsSync(script)) return;
  const models = await import(pathToFileURL(script).href);
  await models.prepareModels();
}

/** `pnpm@1.2.3`, from package.json's packageManager without its checksum: the version is written once. */
function pinnedPnpm() {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return packageManager.split('+')[0];
}

async function run(command, args, { verbose }) {
  const onOutput = verbose ? (chunk) => process.stdout.write(chunk) : undefined;
  const { code, output } = await runCommand(command, args, { cwd: root, env: writableCaches(), onOutput });
  if (code === 0) return;
  throw new Error(
    `${command} ${args.join(' ')} ended with code ${code}${verbose ? '' : `:\n${output.trim()}`}`,
  );
}

/** Where the home folder cannot be written (a service account, a read-only image) the caches go into .remuda. */
function writableCaches() {
  if (isWritable(homedir())) return process.env;
  const caches = join(stateDir, 'home');
  return {
    ...process.env,
    HOME: caches,
    npm_config_cache: process.env.npm_config_cache ?? join(caches, 'npm'),
  };
}

function isWritable(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    return error.code === 'ENOENT' && folder !== dirname(folder) && isWritable(dirname(folder));
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  stopOnSignal();
  prepare({ verbose: process.argv.includes('--verbose') }).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
