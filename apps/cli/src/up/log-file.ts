/** The log of a child: a file that it writes to itself, so that neither side can block or break the other. */
import { closeSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';

/** Opens a new log; the one of the run before is kept as `.1`. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  try {
    renameSync(path, `${path}.1`);
  } catch {
    // There was none.
  }
  return reopenLog(path);
}

export function reopenLog(path: string): number {
  return openSync(path, 'a');
}

export { closeSync as closeLog };

/** Of a log the part that is looked at for what went wrong. */
const LOOKED_AT = 500;

/** The last lines that tell of trouble: warnings, errors, and what is no log line at all, such as a stack. */
export function lastTrouble(path: string, count: number): string[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return [];
  }
  const lines = text.split('\n').filter(Boolean).slice(-LOOKED_AT);
  return lines.flatMap(troubleIn).slice(-count);
}

function troubleIn(line: string): string[] {
  try {
    const { level, msg, err, reason } = JSON.parse(line) as Record<string, unknown>;
    if (level === 'info' || level === 'debug') return [];
    const message = (err as { message?: string } | undefined)?.message ?? reason;
    return [`${level}: ${msg}${message ? `: ${message}` : ''}`];
  } catch {
    return [line];
  }
}
