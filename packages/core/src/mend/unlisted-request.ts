/**
 * A request that has not ended and is not in the list of those: no walk over that list would ever find that its job is
 * lost or its deadline has passed. It is put back with its time of acceptance.
 */
import { isTerminal } from '@remuda/schemas';
import type { Mend, SubjectOf } from './mend.js';

export const unlistedRequest: Mend<SubjectOf<'record'>> = {
  kind: 'relisted',
  subject: 'record',
  isWrong: async ({ requestId }, state, { redis, keys }) =>
    state !== null &&
    !isTerminal(state.status) &&
    (await redis.zscore(keys.open(keys.shardOf(requestId)), requestId)) === null,
  async mend({ key, requestId }, { redis, keys }) {
    const at = await redis.hget(key, 'at');
    if (at === null) return false;
    const shard = keys.shardOf(requestId);
    // One that ends between the question and this is dropped again by the walk over the list.
    await redis.zadd(keys.all(shard), 'NX', at, requestId);
    return (await redis.zadd(keys.open(shard), 'NX', at, requestId)) === 1;
  },
};
