/** From a seed to a plan of kills: who, after how many rows, how long after that. Pure: the same question, the same plan. */
import { Random } from '../chaos/plan/random.js';

export const KILL_TARGETS = ['coordinator', 'worker', 'runner', 'redis'] as const;
export type KillTarget = (typeof KILL_TARGETS)[number];

export interface Kill {
  target: KillTarget;
  /** It comes when so many different rows have been begun. */
  atRows: number;
  /** And so long after that, in milliseconds. */
  delayMs: number;
}

export interface KillQuestion {
  seed: number;
  rows: number;
  /** Kills of each target. */
  each: number;
  /** Longest delay. */
  mostDelayMs: number;
}

/** Share of the rows after which no kill is planned: each must find the job under way. */
const LAST_SHARE = 0.75;

export function makeKillPlan({ seed, rows, each, mostDelayMs }: KillQuestion): Kill[] {
  const random = new Random(seed);
  const targets = random.shuffled(KILL_TARGETS.flatMap((target) => Array<KillTarget>(each).fill(target)));
  const step = (rows * LAST_SHARE) / targets.length;
  return targets.map((target, index) => ({
    target,
    atRows: Math.round(step * (index + random.next())),
    delayMs: random.whole(0, mostDelayMs),
  }));
}
