/** How full Redis is. Of a Cluster the fullest server counts: a request's keys lie on one, and nobody chooses which. */
import { type Redis, redisNodes } from './redis.js';

/** Share of maxmemory that is used, 0 where no limit is set. */
export async function memoryShare(redis: Redis): Promise<number> {
  const infos = await Promise.all(redisNodes(redis).map((node) => node.info('memory')));
  return Math.max(0, ...infos.map(shareOf));
}

function shareOf(info: string): number {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0);
  const most = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
  return most > 0 ? used / most : 0;
}
