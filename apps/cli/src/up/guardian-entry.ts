/**
 * Entry of the guardian: waits until the channel to `remuda up` breaks, which after an orderly stop it does not live to
 * see. Then the children, which have seen the same and stop by themselves, get their time and are killed after it, and
 * the Redis that `up` owned is stopped last, as in an orderly stop.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { readRecord, stopRedisProcess } from '@remuda/infra/redis-process';
import type { GuardianMessage } from './guardian.js';

/** Above the hard limit of a worker's own stop. */
const CHILDREN_MS = 35_000;
const POLL_MS = 50;

const [redisFolder = '', parent = ''] = process.argv.slice(2);
const groups = new Set<number>();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('message', ({ group }: GuardianMessage) => groups.add(group));
process.once('disconnect', () => void endEverything());

async function endEverything(): Promise<void> {
  const deadline = Date.now() + CHILDREN_MS;
  while ([...groups].some(isAlive) && Date.now() < deadline) await sleep(POLL_MS);
  for (const group of groups) kill(group);
  const redis = readRecord(redisFolder);
  // Another `up` may have taken it over by now; then it is that one's.
  if (redis && redis.pid > 0 && redis.owner.pid === Number(parent)) await stopRedisProcess(redis);
  process.exit(0);
}

/** Whether any process of the group is left: a killed worker may leave its runner behind. */
function isAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function kill(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Gone by itself.
  }
}
