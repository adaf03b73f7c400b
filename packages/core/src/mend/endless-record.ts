/** The record of a request that has ended, without a time to live: it is kept as long from now as it was meant to be. */
import { isTerminal } from '@remuda/schemas';
import type { Mend, SubjectOf } from './mend.js';

const NO_TIME_TO_LIVE = -1;
/** Where the record does not say, in milliseconds. */
const KEPT_MS = 3_600_000;

export const endlessRecord: Mend<SubjectOf<'record'>> = {
  kind: 'retention_set',
  subject: 'record',
  isWrong: async ({ key }, state, { redis }) =>
    state !== null && isTerminal(state.status) && (await redis.pttl(key)) === NO_TIME_TO_LIVE,
  async mend({ key }, { redis }) {
    const keptMs = Number(await redis.hget(key, 'ttl')) || KEPT_MS;
    return (await redis.pexpire(key, keptMs)) === 1;
  },
};
