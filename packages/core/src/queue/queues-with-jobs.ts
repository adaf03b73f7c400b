/**
 * Which queues hold jobs, for who has no consumer on them: one small command for each queue. A consumer's own lists
 * (BullMQ's keys) are told of here only.
 */
import type { Redis } from '../store/redis.js';
import { type Partition, queueName, queuePrefix } from './partitions.js';

/** Jobs that wait, that are to come back later, and that a worker holds or held when it died. */
const LISTS = ['wait', 'prioritized', 'delayed', 'active'];
/** Commands sent at once. */
const SLICE = 100;

/** Those of the partitions in whose queue there is a job, in their order. @throws where Redis does not answer */
export async function queuesWithJobs(
  redis: Redis,
  keyPrefix: string,
  partitions: readonly Partition[],
): Promise<Partition[]> {
  const found: Partition[] = [];
  for (let from = 0; from < partitions.length; from += SLICE) {
    const slice = partitions.slice(from, from + SLICE);
    const counts = await Promise.all(slice.map((partition) => redis.exists(...keysOf(keyPrefix, partition))));
    found.push(...slice.filter((_, i) => (counts[i] as number) > 0));
  }
  return found;
}

/** An empty list has no key in Redis. */
function keysOf(keyPrefix: string, partition: Partition): string[] {
  return LISTS.map((list) => `${queuePrefix(keyPrefix)}:${queueName(partition)}:${list}`);
}
