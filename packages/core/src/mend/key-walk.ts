/**
 * A walk over all keys of the fleet, some in each turn, round after round. Redis says of SCAN that what is there from
 * the beginning of a round to its end is seen in it; what comes or goes meanwhile may be missed, or be seen twice.
 */
import { type Redis, redisNodes } from '../store/redis.js';

/** Keys that one command looks at: about 0.1 ms of Redis. */
const STEP = 250;

export class KeyWalk {
  readonly #redis: Redis;
  readonly #pattern: string;
  #node = 0;
  #cursor = '0';

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#pattern = `${prefix}:*`;
  }

  /** The keys of the next steps, which look at about `most`, those of others included; fewer at the end of a round. */
  async next(most: number): Promise<string[]> {
    const nodes = redisNodes(this.#redis);
    const keys = new Set<string>();
    for (let looked = 0; looked < most; looked += STEP) {
      const node = nodes[this.#node];
      // A Cluster that has become smaller: from the beginning.
      if (!node) {
        this.#begin(0);
        break;
      }
      const [cursor, found] = await node.scan(this.#cursor, 'MATCH', this.#pattern, 'COUNT', STEP);
      for (const key of found) keys.add(key);
      this.#cursor = cursor;
      if (cursor !== '0') continue;
      this.#begin(this.#node + 1);
      if (this.#node < nodes.length) continue;
      this.#begin(0);
      break;
    }
    return [...keys];
  }

  #begin(node: number): void {
    this.#node = node;
    this.#cursor = '0';
  }
}
