/**
 * The names of BullMQ's keys, as far as others than BullMQ need them, and the ids of jobs. A job's id is the id of its
 * request, unless BullMQ keeps something of its own under that name: a job called "wait" would lie where the list of
 * waiting jobs does, and no job could wait any more. Ids of requests begin with a letter, so "_wait" is nobody else's.
 */
import { type Partition, partitionOf, queueName, queuePrefix } from './partitions.js';

/** What stands beside the jobs of a queue under its name. */
const OWN_KEYS = new Set([
  ...['wait', 'paused', 'active', 'delayed', 'prioritized', 'waiting-children', 'completed', 'failed'],
  ...['id', 'pc', 'meta', 'events', 'marker', 'limiter', 'stalled', 'stalled-check', 'repeat', 'priority'],
  ...['metrics', 'de', 'groups'],
]);

export function jobIdOf(requestId: string): string {
  return OWN_KEYS.has(requestId) ? `_${requestId}` : requestId;
}

export function requestIdOf(jobId: string): string {
  return jobId.startsWith('_') ? jobId.slice(1) : jobId;
}

/** Hash: the job of a request. */
export function jobKey(keyPrefix: string, partition: Partition, requestId: string): string {
  return `${queuePrefix(keyPrefix)}:${queueName(partition)}:${jobIdOf(requestId)}`;
}

/** Whose job lies under a key; null where it is no job's. */
export function jobOfKey(key: string, keyPrefix: string): { partition: Partition; requestId: string } | null {
  const before = `${queuePrefix(keyPrefix)}:`;
  if (!key.startsWith(before)) return null;
  const [name = '', jobId = '', ...more] = key.slice(before.length).split(':');
  const partition = partitionOf(name);
  if (!partition || more.length > 0 || !jobId || OWN_KEYS.has(jobId)) return null;
  return { partition, requestId: requestIdOf(jobId) };
}
