/** Node itself and pnpm, which nobody has to install: `npm start` fetches the pinned version through npx. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Finding, fail, ok } from './finding.js';

/** As in package.json's engines. */
const NODE_FLOOR = [20, 19] as const;
const PNPM_TIMEOUT_MS = 10_000;

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const recent = major > NODE_FLOOR[0] || (major === NODE_FLOOR[0] && minor >= NODE_FLOOR[1]);
  if (recent) return ok('node', `Node ${version}`);
  return fail(
    'node',
    `Node ${version}, older than ${NODE_FLOOR.join('.')}`,
    'Install a newer Node: nodejs.org, your package manager, or nvm install 22.',
  );
}

export async function checkPnpm(env: NodeJS.ProcessEnv): Promise<Finding> {
  try {
    // --version of a shim that has yet to download its program (corepack) would go to the network.
    const offline = { ...env, COREPACK_ENABLE_NETWORK: '0', COREPACK_ENABLE_DOWNLOAD_PROMPT: '0' };
    const options = { env: offline, timeout: PNPM_TIMEOUT_MS };
    const { stdout } = await promisify(execFile)('pnpm', ['--version'], options);
    return ok('pnpm', `pnpm ${stdout.trim()} on the PATH`);
  } catch {
    return ok('pnpm', 'not on the PATH; npm start gets the pinned version through npx');
  }
}
