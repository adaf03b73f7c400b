/** How full Redis is. Of a Cluster the fullest server counts: a request's keys lie on one, and nobody chooses which. */
import { type Redis, redisNodes } from './redis.js';

export interface MemoryUse {
  /** Bytes. */
  used: number;
  /** maxmemory; 0: no limit is set. */
  most: number;
}

/** Share of maxmemory that is used, 0 where no limit is set. */
export async function memoryShare(redis: Redis): Promise<number> {
  return shareOf(await memoryUse(redis));
}

/** Of the server that is fullest. */
export async function memoryUse(redis: Redis): Promise<MemoryUse> {
  const infos = await Promise.all(redisNodes(redis).map((node) => node.info('memory')));
  const uses = infos.map(useOf);
  return uses.reduce((most, use) => (shareOf(use) > shareOf(most) ? use : most), uses[0] ?? NOTHING);
}

const NOTHING: MemoryUse = { used: 0, most: 0 };

function shareOf({ used, most }: MemoryUse): number {
  return most > 0 ? used / most : 0;
}

function useOf(info: string): MemoryUse {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0);
  return { used, most: Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0) };
}
