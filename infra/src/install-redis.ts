// Owns the one case in which Remuda installs a system package: root on Debian or Ubuntu. The package's own service
// is not started (we start a server of our own), and an administrator's policy-rc.d is left as it is.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { findRedisServer } from './redis-process.js';

export interface InstallOptions {
  env: NodeJS.ProcessEnv;
  log: (line: string) => void;
}

const POLICY_PATH = '/usr/sbin/policy-rc.d';
const POLICY_MARK = '# written by remuda while it installs redis-server; safe to delete';
/** invoke-rc.d's code for "this action is forbidden". */
const FORBIDDEN = 101;
const PACKAGES = ['redis-server', 'valkey-server'];

/** Why apt-get cannot be used here, or undefined when it can. */
export function whyNotInstallable(env: NodeJS.ProcessEnv): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  if (!isDebianLike()) return 'not Debian or Ubuntu';
  const found = (env.PATH ?? '').split(':').some((folder) => folder && existsSync(`${folder}/apt-get`));
  return found ? undefined : 'no apt-get on the PATH';
}

/** Installs a server package and returns the server's path. */
export async function installRedis({ env, log }: InstallOptions): Promise<string> {
  log('installing redis-server with apt-get, as no Redis was found (10-30 s)');
  const begun = Date.now();
  if (!hasPackageLists()) await aptGet(env, ['update']);
  const restorePolicy = forbidServiceStart();
  try {
    await installFirstAvailable(env);
  } finally {
    restorePolicy();
  }
  await disableService(env);
  const binary = findRedisServer(env.PATH);
  if (!binary) throw new Error('apt-get installed redis-server, but it is not on the PATH');
  log(`installed ${binary} in ${Math.round((Date.now() - begun) / 1_000)} s`);
  return binary;
}

function isDebianLike(): boolean {
  try {
    return /^(ID|ID_LIKE)=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'));
  } catch {
    return false;
  }
}

function hasPackageLists(): boolean {
  try {
    return readdirSync('/var/lib/apt/lists').some((name) => name.includes('_Packages'));
  } catch {
    return false;
  }
}

/** Old lists name files that the mirror no longer has: one update, then each name again. */
async function installFirstAvailable(env: NodeJS.ProcessEnv): Promise<void> {
  const install = (name: string) => aptGet(env, ['install', '-y', '--no-install-recommends', name]);
  try {
    return await install('redis-server');
  } catch {
    await aptGet(env, ['update']);
  }
  const failures: string[] = [];
  for (const name of PACKAGES) {
    try {
      return await install(name);
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  throw new Error(failures.join('\n'));
}

async function aptGet(env: NodeJS.ProcessEnv, args: string[]): Promise<void> {
  const { code, output } = await run('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], {
    ...env,
    DEBIAN_FRONTEND: 'noninteractive',
  });
  if (code !== 0)
    throw new Error(`apt-get ${args.join(' ')} failed (code ${code}):\n${output.slice(-2_000)}`);
}

/** An existing policy stays in force; where it would allow the start, disableService stops the service after. */
function forbidServiceStart(): () => void {
  const leftOver = existsSync(POLICY_PATH) && readFileSync(POLICY_PATH, 'utf8').includes(POLICY_MARK);
  if (existsSync(POLICY_PATH) && !leftOver) return () => {};
  writeFileSync(POLICY_PATH, `#!/bin/sh\n${POLICY_MARK}\nexit ${FORBIDDEN}\n`, { mode: 0o755 });
  return () => rmSync(POLICY_PATH, { force: true });
}

/** Best effort: without systemd nothing starts it at boot; where a policy allowed the start, it is stopped here. */
async function disableService(env: NodeJS.ProcessEnv): Promise<void> {
  for (const service of PACKAGES) {
    if (existsSync('/run/systemd/system')) await run('systemctl', ['disable', '--now', service], env);
    else if (existsSync(`/etc/init.d/${service}`)) await run(`/etc/init.d/${service}`, ['stop'], env);
  }
}

function run(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(command, args, { env, timeout: 5 * 60_000, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : 1) : 0;
      resolve({ code, output: `${stdout}${stderr}${error && !stderr ? error.message : ''}` });
    });
  });
}
