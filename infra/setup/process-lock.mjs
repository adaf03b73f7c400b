// Owns: "is that process still the one I mean?" and a lock file that a dead holder cannot keep.
// Invariant: a process is named by its id and its start time together, because ids are used again.
// Used by the set-up scripts (plain Node, nothing is built yet) and by the Redis launcher.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** When the process started, in the platform's own notation; undefined when it does not run (or is a zombie). */
export function processStarted(pid) {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== 'EPERM') return undefined;
  }
  return process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
}

export function thisProcess() {
  return { pid: process.pid, started: processStarted(process.pid) };
}

export function isRunning({ pid, started }) {
  const now = processStarted(pid);
  return now !== undefined && now === started;
}

function startedOnLinux(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name may hold spaces and brackets: what follows its last bracket is field 3 (state) and on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A killed process's main thread is a zombie before its other threads, and with them its sockets, are gone.
    const dead = fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[20 - 3]) <= 1);
    return dead ? undefined : fields[22 - 3];
  } catch {
    return undefined;
  }
}

function startedByPs(pid) {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Runs `work` while holding the lock file; waits for a living holder, takes over from a dead one. */
export async function withLock(path, work, { onWait, timeoutMs = 15 * 60_000 } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  const mine = JSON.stringify({ ...thisProcess(), token: randomBytes(6).toString('hex') });
  await acquire(path, mine, { onWait, timeoutMs });
  try {
    return await work();
  } finally {
    if (readOrEmpty(path) === mine) rmSync(path, { force: true });
  }
}

async function acquire(path, mine, { onWait, timeoutMs }) {
  const deadline = Date.now() + timeoutMs;
  let told = false;
  while (!tryCreate(path, mine)) {
    if (dropIfAbandoned(path)) continue;
    if (!told) onWait?.(holderOf(path)?.pid);
    told = true;
    if (Date.now() > deadline)
      throw new Error(`${path} is held by process ${holderOf(path)?.pid}; gave up waiting`);
    await sleep(50);
  }
}

function tryCreate(path, content) {
  try {
    writeFileSync(path, content, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Only one waiter may remove a dead holder's file, else the second would remove the first one's new lock. */
function dropIfAbandoned(path) {
  if (!isAbandoned(path)) return false;
  const guard = `${path}.takeover`;
  if (!tryCreate(guard, '')) {
    if (ageMs(guard) > 10_000) rmSync(guard, { force: true });
    return false;
  }
  try {
    if (isAbandoned(path)) rmSync(path, { force: true });
    return true;
  } finally {
    rmSync(guard, { force: true });
  }
}

function isAbandoned(path) {
  const holder = holderOf(path);
  // Created but not yet written: a moment's grace, then it is the trace of a crash.
  return holder ? !isRunning(holder) : ageMs(path) > 5_000;
}

function holderOf(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function readOrEmpty(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function ageMs(path) {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}
