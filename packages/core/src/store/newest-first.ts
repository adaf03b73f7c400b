/** Ids in sorted sets by time (Unix milliseconds), read a page at a time. */
import type { Redis } from './redis.js';

/** An id and its time. */
export interface Place {
  at: number;
  id: string;
}

/** What WITHSCORES answers. */
export function placesOf(flat: readonly string[]): Place[] {
  const places: Place[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2)
    places.push({ id: flat[i] as string, at: Number(flat[i + 1]) });
  return places;
}

/**
 * The newest of several sets together, strictly before a place; ids of one millisecond go by their names.
 * @param before the last one seen; null: from the beginning
 */
export async function newestFirst(
  redis: Pick<Redis, 'zrevrangebyscore'>,
  sets: readonly string[],
  before: Place | null,
  count: number,
): Promise<Place[]> {
  const pages = await Promise.all(sets.map((key) => newestOf(redis, key, before, count)));
  return pages
    .flat()
    .sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
    .slice(0, count);
}

async function newestOf(
  redis: Pick<Redis, 'zrevrangebyscore'>,
  key: string,
  before: Place | null,
  count: number,
): Promise<Place[]> {
  const found: Place[] = [];
  const max = before === null ? '+inf' : String(before.at);
  let offset = 0;
  // Ids of the same millisecond as the place are skipped by name, since a score alone does not order them.
  while (found.length < count) {
    const page = placesOf(
      await redis.zrevrangebyscore(key, max, '-inf', 'WITHSCORES', 'LIMIT', offset, count),
    );
    offset += page.length;
    for (const entry of page) {
      if (before === null || entry.at < before.at || entry.id < before.id) found.push(entry);
    }
    if (page.length < count) break;
  }
  return found.slice(0, count);
}
