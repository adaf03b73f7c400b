/**
 * When a refused caller should come back: when half of what the limit allows has left at the rate at which it leaves
 * now. Not when the first place is free: then all who were refused meanwhile would come for it. Each is told a time of
 * his own around that, so that they do not come together.
 */

export const RETRY_AFTER_S = { least: 1, most: 120, unknown: 10 } as const;
/** The queue is emptied to this share of its limit before the refused come back. */
const COME_BACK_SHARE = 0.5;
/** Spread around the expected time: from 0.5 to 1.5 of it. */
const SPREAD = 1;

export interface Excess {
  /** What has not ended, in the unit of the limit. */
  used: number;
  limit: number;
  /** What leaves in a second, in the same unit; undefined or 0: not measured. */
  perSecond: number | undefined;
}

/**
 * Seconds, from 1 to 120.
 * @param random from 0 to below 1
 */
export function retryAfterS({ used, limit, perSecond }: Excess, random: () => number): number {
  const excess = Math.max(0, used - limit * COME_BACK_SHARE);
  const expected = perSecond !== undefined && perSecond > 0 ? excess / perSecond : RETRY_AFTER_S.unknown;
  return spread(expected, random);
}

/** Where nothing is known of when it is better: about ten seconds. */
export function unknownRetryAfterS(random: () => number): number {
  return spread(RETRY_AFTER_S.unknown, random);
}

function spread(seconds: number, random: () => number): number {
  const { least, most } = RETRY_AFTER_S;
  return Math.min(most, Math.max(least, seconds * (1 - SPREAD / 2 + SPREAD * random())));
}
