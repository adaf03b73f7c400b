import { describe, expect, it } from 'vitest';
import { Interrupted } from '../cli-error.js';
import { withProgress } from './progress.js';
import { recordingTerminal } from './recording-terminal.fixture.js';

describe('a step', () => {
  it.each<[string, () => Promise<void>, RegExp]>([
    ['done', async () => {}, /^ok {4}starting {2}\d/],
    ['that failed', () => Promise.reject(new Error('no')), /^FAIL {2}starting {2}\d/],
    ['that was cut off', () => Promise.reject(new Interrupted('SIGINT')), /^interrupted {2}starting {2}\d/],
  ])('%s says so', async (_, work, line) => {
    const terminal = recordingTerminal();
    await withProgress(terminal, 'starting', work).catch(() => {});
    expect(terminal.notes).toEqual([expect.stringMatching(line)]);
  });
});
