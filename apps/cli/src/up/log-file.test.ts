import { mkdtempSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { workerEnvironment } from './child-environment.js';
import { closeLog, lastTrouble, openLog, reopenLog } from './log-file.js';

const folder = mkdtempSync(join(tmpdir(), 'remuda-log-'));
const path = join(folder, 'logs/worker-1.log');
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(open: (path: string) => number, text: string): void {
  const log = open(path);
  writeSync(log, text);
  closeLog(log);
}

describe('the log of a child', () => {
  it('is new for each run, the one before is kept, and a restarted child goes on in it', () => {
    write(openLog, 'first run\n');
    write(openLog, 'second run\n');
    write(reopenLog, 'restarted\n');
    expect(readFileSync(path, 'utf8')).toBe('second run\nrestarted\n');
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('first run\n');
  });

  it('is asked for its last trouble', () => {
    const lines = [
      { level: 'error', msg: 'model could not be loaded', reason: 'corrupt' },
      { level: 'info', msg: 'batch run' },
      { level: 'error', msg: 'worker did not start', err: { message: 'no Redis', stack: '…' } },
    ];
    write(openLog, `${lines.map((line) => JSON.stringify(line)).join('\n')}\nSegmentation fault\n`);
    expect(lastTrouble(path, 2)).toEqual(['error: worker did not start: no Redis', 'Segmentation fault']);
    expect(lastTrouble(path, 5)).toHaveLength(3);
    expect(lastTrouble(join(folder, 'none.log'), 5)).toEqual([]);
  });
});

describe('the environment of several workers', () => {
  it('has an id and a port for each where one is set', () => {
    const env = { REMUDA_WORKER_ID: 'box', REMUDA_WORKER_PORT: '9000', PATH: '/bin' };
    expect(workerEnvironment(env, 1, 1)).toBe(env);
    expect(workerEnvironment(env, 2, 3)).toEqual({
      REMUDA_WORKER_ID: 'box-2',
      REMUDA_WORKER_PORT: '9001',
      PATH: '/bin',
    });
    expect(workerEnvironment({ REMUDA_WORKER_PORT: '0' }, 2, 2)).toEqual({ REMUDA_WORKER_PORT: '0' });
  });
});
