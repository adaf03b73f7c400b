/**
 * `remuda` as people run it: real processes in a temporary project, and a look at what is left afterwards. Every process
 * that a command starts works in the temporary folder, so whatever is found there was left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const checkout = fileURLToPath(new URL('../../../', import.meta.url));
export const remuda = join(checkout, 'apps/cli/bin/remuda.mjs');
/** For a machine that runs other tests beside this one. */
export const UP_MS = 180_000;
const GONE_MS = 60_000;
/** Of a test that starts processes. */
export const TEST_MS = 300_000;

/** Where processes cannot be found by their folder there is nothing to look at. */
export const onLinux = process.platform === 'linux';

export interface Finished {
  code: number | null;
  out: string;
  err: string;
}

export class Cli {
  out = '';
  err = '';
  readonly ended: Promise<number | null>;

  constructor(readonly process: ChildProcess) {
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
    });
    process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    this.ended = once(process, 'close').then(([code]) => code as number | null);
  }

  async finished(): Promise<Finished> {
    return { code: await this.ended, out: this.out, err: this.err };
  }

  /** The address of the API, once `up` says that it is up. */
  async url(): Promise<string> {
    const deadline = Date.now() + UP_MS;
    while (!this.err.includes('Remuda is up')) {
      const over = this.process.exitCode !== null || Date.now() > deadline;
      if (over) throw new Error(`up did not come up:\n${this.err}`);
      await sleep(50);
    }
    return /API +(http\S+)/.exec(this.err)?.[1] as string;
  }
}

/** Of the project of this test. */
export let folder = '';

export function project(): string {
  folder = mkdtempSync(join(realpathSync(tmpdir()), 'remuda-cli-'));
  mkdirSync(join(folder, '.remuda'));
  return folder;
}

/** Runs in the project, without what the user's or the test's own environment says of Redis and of the fleet. */
export function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => name !== 'REDIS_URL' && (!name.startsWith('REMUDA_') || name === 'REMUDA_TEST_RUN'),
  );
  return { ...Object.fromEntries(kept), NO_COLOR: '1', ...more };
}

export function start(args: string[], more: NodeJS.ProcessEnv = {}, input = ''): Cli {
  const child = spawn(process.execPath, [remuda, ...args], {
    cwd: folder,
    env: environment(more),
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  return new Cli(child);
}

export function run(args: string[], more?: NodeJS.ProcessEnv, input?: string): Promise<Finished> {
  return start(args, more, input).finished();
}

/** Processes that work in the project or below: id → command line. */
export function processesInProject(): Map<number, string> {
  const found = new Map<number, string>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const cwd = readlinkSync(`/proc/${pid}/cwd`);
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
      if (cwd === folder || cwd.startsWith(`${folder}/`)) found.set(Number(pid), command);
    } catch {
      // Gone while we looked, or a zombie.
    }
  }
  return found;
}

export function isThere(part: string): boolean {
  return [...processesInProject().values()].some((command) => command.includes(part));
}

export async function until(holds: () => boolean, ms = UP_MS): Promise<void> {
  await expect.poll(holds, { timeout: ms }).toBe(true);
}

export async function leftBehind(): Promise<string[]> {
  const deadline = Date.now() + GONE_MS;
  while (processesInProject().size > 0 && Date.now() < deadline) await sleep(50);
  return [...processesInProject().values()];
}

export function pidOf(part: string): number {
  const found = [...processesInProject()].find(([, command]) => command.includes(part));
  if (!found)
    throw new Error(`no process with ${part} among:\n${[...processesInProject().values()].join('\n')}`);
  return found[0];
}

/** At the end of a test. */
export function removeProject(): void {
  if (onLinux) for (const pid of processesInProject().keys()) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
