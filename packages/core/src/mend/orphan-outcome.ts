/**
 * A large outcome whose request has no record any more, or has other outcomes; and one that would outlive the record of
 * a request that has ended (an attempt that was fenced wrote it), which goes with the record.
 */
import { isTerminal } from '@remuda/schemas';
import type { Mend, MendDeps, SubjectOf } from './mend.js';

/** Record and outcomes get their time in one script; the rest is the time between two questions. */
const SLACK_MS = 60_000;

export const orphanOutcome: Mend<SubjectOf<'outcome'>> = {
  kind: 'outcome_removed',
  subject: 'outcome',
  async isWrong({ key, requestId, nonce }, state, deps) {
    if (state === null || state.nonce !== nonce) return true;
    return isTerminal(state.status) && outlives(await timesOf(key, requestId, deps));
  },
  async mend({ key, requestId }, deps) {
    const times = await timesOf(key, requestId, deps);
    if (times.record < 0) return (await deps.redis.unlink(key)) === 1;
    return outlives(times) && (await deps.redis.pexpire(key, times.record)) === 1;
  },
};

/** Milliseconds left; below 0: no end, or no key. */
interface Times {
  own: number;
  record: number;
}

async function timesOf(key: string, requestId: string, { redis, keys }: MendDeps): Promise<Times> {
  const [own, record] = await Promise.all([redis.pttl(key), redis.pttl(keys.record(requestId))]);
  return { own, record };
}

/** A record without an end is mended first (endless-record.ts). */
function outlives({ own, record }: Times): boolean {
  return record >= 0 && (own === -1 || own > record + SLACK_MS);
}
