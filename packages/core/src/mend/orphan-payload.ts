/**
 * An input that was to last for a request which has no record, has ended, or has other inputs by now. Those that have a
 * time to live go by themselves.
 */
import { isTerminal } from '@remuda/schemas';
import type { Mend, SubjectOf } from './mend.js';

const NO_TIME_TO_LIVE = -1;

export const orphanPayload: Mend<SubjectOf<'payload'>> = {
  kind: 'payload_removed',
  subject: 'payload',
  isWrong: async ({ key, nonce }, state, { redis }) =>
    (state === null || isTerminal(state.status) || state.nonce !== nonce) &&
    (await redis.pttl(key)) === NO_TIME_TO_LIVE,
  mend: async ({ key }, { redis }) => (await redis.unlink(key)) === 1,
};
