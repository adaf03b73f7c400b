import type { BulkJob } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { UnreachableError } from '../api/api-client.js';
import { recordingTerminal } from '../terminal/recording-terminal.fixture.js';
import { completed, jobWith } from './bulk-answers.fixture.js';
import { followJob } from './follow-job.js';

/** Looks in turn, and a clock that only the pauses move. */
async function follow(looks: (BulkJob | Error)[], options: { asked?: Promise<void> } = {}) {
  let now = 0;
  const terminal = recordingTerminal();
  const get = async (): Promise<BulkJob> => {
    const look = looks.shift() as BulkJob | Error;
    if (look instanceof Error) throw look;
    return look;
  };
  const followed = await followJob(jobWith(), {
    control: { get },
    terminal,
    pollMs: 1_000,
    lineMs: 3_000,
    patienceMs: 5_000,
    now: () => now,
    pause: async (ms) => {
      now += ms;
    },
    ...options,
  }).catch((error: Error) => error);
  return { followed, terminal };
}

const away = (): Error => new UnreachableError('http://x', new Error('ECONNREFUSED'));
const done = (rows: number) => jobWith({ progress: { rows_done: rows } });

describe('following a bulk job', () => {
  it('writes a line now and then where there is no terminal', async () => {
    const looks = [done(1_000), done(2_000), done(3_000), done(4_000), done(5_000), completed()];
    const { followed, terminal } = await follow(looks);
    expect(followed).toMatchObject({ end: 'ended' });
    expect(terminal.notes).toEqual([
      '0.0 %  0 of 200,000 rows',
      '1.5 %  3,000 of 200,000 rows',
      '100.0 %  4 of 4 rows',
    ]);
  });

  it('waits for a server that is away, and says so once', async () => {
    const { followed, terminal } = await follow([away(), away(), completed()]);
    expect(followed).toMatchObject({ end: 'ended' });
    expect(terminal.notes.filter((line) => line.includes('Waiting for it'))).toHaveLength(1);
  });

  it('gives up on a server that stays away', async () => {
    const { followed } = await follow(Array.from({ length: 20 }, away));
    expect(followed).toBeInstanceOf(UnreachableError);
  });

  it('ends where the job is paused', async () => {
    const { followed } = await follow([jobWith({ status: 'paused' })]);
    expect(followed).toMatchObject({ end: 'paused' });
  });

  it('ends when the person asks for it, with the job as it was last seen', async () => {
    const { followed } = await follow([], { asked: Promise.resolve() });
    expect(followed).toMatchObject({ end: 'asked', job: { status: 'in_progress' } });
  });
});
