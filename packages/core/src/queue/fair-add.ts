/**
 * How a job gets its place in the queue: BullMQ's own script and the one that gives tenants their turns, as one script,
 * so that an accepted request costs no further round trip and no crash comes between the two.
 *
 * Next: store/scripts/add-job-11.lua.
 */
import { costOf, headStart, overtakingPace, type Turn } from '../fairness/fair-tags.js';
import { FIRST_SCORE, scoreOf, startOf } from '../fairness/places.js';
import { type Redis, scriptText } from '../store/redis.js';

/** What BullMQ's backend sends its commands to. */
export interface BullmqClient {
  runCommand(name: string, args: readonly (string | Buffer)[]): Promise<unknown>;
}

export interface FairAddOptions {
  redis: Redis;
  /** A key of the queue by name. */
  keyOf(name: string): string;
  /** The text of BullMQ's script that adds a job with a priority. */
  bullmqScript: string;
  /** Rows of head start for each level of priority. */
  stepRows: number;
  /** How far scores may go before what waits is moved down. */
  room: number;
}

/** Keys of BullMQ's script; its arguments follow. */
const BULLMQ_KEYS = 9;
const COMMAND = 'remuda_addJob';

type Command = (...args: (string | number | Buffer)[]) => Promise<unknown>;

export class FairAdd {
  readonly #options: FairAddOptions;
  /** No id of a job holds a ":". */
  readonly #keys: [clock: string, tags: string];

  constructor(options: FairAddOptions) {
    const { redis, keyOf, bullmqScript } = options;
    this.#options = options;
    this.#keys = [keyOf('fair:clock'), keyOf('fair:tags')];
    if (COMMAND in redis) return;
    const lua = `local function bullmq_add(KEYS, ARGV)\n${bullmqScript}\nend\n${scriptText('add-job-11.lua')}`;
    redis.defineCommand(COMMAND, { lua });
  }

  /** A client for one command of BullMQ's backend: the one that adds this job. */
  client(jobId: string, turn: Turn): BullmqClient {
    return { runCommand: (_, args) => this.#run(args, jobId, turn) };
  }

  /** Where a job would be placed if it were added now, as near as can be told without adding it. */
  async scoreOf(turn: Turn): Promise<number> {
    const { redis, keyOf, stepRows } = this.#options;
    const [clock, tags] = this.#keys;
    const [first, held, ends] = await Promise.all([
      redis.zrangebyscore(keyOf('prioritized'), FIRST_SCORE, '+inf', 'WITHSCORES', 'LIMIT', 0, 1),
      redis.hmget(clock, 'v', 'base'),
      redis.zmscore(tags, turn.tenant, `${turn.tenant}/${turn.priority}`),
    ]);
    if (first.length === 0) return FIRST_SCORE;
    const [v, base] = held.map(Number) as [number, number];
    const now = Math.max(v, base + startOf(Number(first[1])));
    const [total, line] = ends.map((end) => Math.max(now, Number(end))) as [number, number];
    const start = Math.max(line, total - headStart(turn, stepRows));
    // Behind all that have the same place.
    return scoreOf(start - base, turn.priority, -1) + 2 ** 8;
  }

  #run(args: readonly (string | Buffer)[], jobId: string, turn: Turn): Promise<unknown> {
    const { redis, keyOf, stepRows, room } = this.#options;
    return (redis as unknown as Record<typeof COMMAND, Command>)[COMMAND](
      BULLMQ_KEYS + this.#keys.length,
      ...args.slice(0, BULLMQ_KEYS),
      ...this.#keys,
      ...args.slice(BULLMQ_KEYS),
      jobId,
      keyOf(jobId),
      turn.tenant,
      turn.priority,
      costOf(turn),
      headStart(turn, stepRows),
      overtakingPace(turn),
      room,
    );
  }
}
