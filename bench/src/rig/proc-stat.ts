/** What Linux knows of a process: CPU time, resident memory, children. Read from /proc, without asking the process. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks a second in /proc/<pid>/stat: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Fields of /proc/<pid>/stat from the state on (field 3); the name before it may hold spaces and brackets. */
function statFields(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** User and system time of a process so far, all its threads, in microseconds. 0: it is gone. */
export function cpuMicros(pid: number): number {
  try {
    const fields = statFields(pid);
    return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6;
  } catch {
    return 0;
  }
}

/** The same of its children that have ended, and theirs. */
export function endedChildrenMicros(pid: number): number {
  try {
    const fields = statFields(pid);
    return ((Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND) * 1e6;
  } catch {
    return 0;
  }
}

/** Its arguments, the program first. Empty: it is gone. */
export function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** CPU time that anything on this machine has used so far, in microseconds; one core gives a million a second. */
export function machineMicros(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return ((user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND) * 1e6;
}

/** Resident memory in bytes. 0: it is gone. */
export function rssBytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Whether a child of a worker drives a bulk job, and is no runner. */
export function isCoordinator(pid: number): boolean {
  // By its title, and before it has one by its script.
  return commandOf(pid).some((argument) => /coordinator[^/]*$/.test(argument));
}

export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((candidate) => parentOf(candidate) === pid);
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(statFields(pid)[1]);
  } catch {
    return undefined;
  }
}
