// Owns child processes of the set-up scripts. Each gets a process group of its own, so that ending it also ends
// what it started (npx starts pnpm, vitest starts forks); none outlives this process's SIGINT, SIGTERM or SIGHUP.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const SOFT_STOP_MS = 5_000;
const running = new Set();
let stopping = false;

/**
 * Runs to the end; `{ code, output }`. With `inherit` the output goes to the terminal instead. Once a stop has begun
 * it never resolves: the caller must not take an interrupted command for a failed one and carry on.
 */
export function runCommand(command, args, { cwd, env = process.env, inherit = false, onOutput } = {}) {
  return new Promise((resolve) => {
    if (stopping) return;
    const stdio = inherit ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'];
    const child = spawn(command, args, { cwd, env, detached: true, stdio });
    running.add(child);
    let output = '';
    const collect = (chunk) => {
      output += chunk;
      onOutput?.(chunk);
    };
    child.stdout?.setEncoding('utf8').on('data', collect);
    child.stderr?.setEncoding('utf8').on('data', collect);
    child.once('error', (error) => {
      running.delete(child);
      resolve({ code: 127, output: `${command}: ${error.message}` });
    });
    child.once('close', (code, signal) => {
      running.delete(child);
      if (!stopping) resolve({ code: code ?? exitCodeOf(signal), output });
    });
  });
}

/** Ends every running command, softly, then hard. */
export async function stopCommands() {
  stopping = true;
  signalGroups('SIGTERM');
  const deadline = Date.now() + SOFT_STOP_MS;
  while (running.size > 0 && Date.now() < deadline) await sleep(20);
  signalGroups('SIGKILL');
}

/**
 * Kills what tests started in groups of their own and a killed vitest could not stop: every process that has `mark`
 * (`NAME=value`) in its environment or works in `folder` (Redis overwrites its environment with its title). Linux
 * only (it reads /proc); elsewhere it finds none. Returns their command lines.
 */
export function killMarked(mark, folder) {
  const isMarked = (pid) =>
    readOrEmpty(`/proc/${pid}/environ`).split('\0').includes(mark) ||
    (folder && linkOrEmpty(`/proc/${pid}/cwd`).startsWith(`${folder}/`));
  return listOrEmpty('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid && isMarked(pid))
    .map((pid) => {
      const command = readOrEmpty(`/proc/${pid}/cmdline`).split('\0').join(' ').trim();
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {}
      return `${pid} ${command}`;
    });
}

/** On the first signal: end the commands, run `cleanUp`, exit as the signal says. Later ones change nothing (npm repeats Ctrl-C). */
export function stopOnSignal(cleanUp = async () => {}) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, async () => {
      if (stopping) return;
      await stopCommands();
      await cleanUp().catch((error) => console.error(error.message));
      process.exit(exitCodeOf(signal));
    });
  }
}

export function exitCodeOf(signal) {
  return 128 + (constants.signals[signal] ?? 0);
}

function signalGroups(signal) {
  for (const child of running) {
    try {
      process.kill(-child.pid, signal);
    } catch {}
  }
}

function listOrEmpty(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readOrEmpty(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function linkOrEmpty(path) {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
