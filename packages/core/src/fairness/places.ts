/**
 * From a start tag to the score of a job in BullMQ's sorted set of prioritised jobs, where the lowest goes first:
 *
 *   0 … 10 × 2^32            jobs that come back (BullMQ puts them at priority 1: what was begun is finished first), and
 *                            jobs of older builds, whose priority was 1 to 10
 *   11 × 2^32 + place × 2^8 + order of arrival, modulo 2^8
 *
 * A place is 1/32 of a row of virtual time, and in it the more urgent first. A double counts whole numbers up to 2^53,
 * so there is room for 6.9 × 10^10 rows of virtual time; before it runs out the script moves what waits down.
 */

/** Jobs of our making: priority 1 of BullMQ, which only counts when they come back. */
export const RETURNED_PRIORITY = 1;

const LEVEL = 2 ** 32;
const ARRIVALS = 2 ** 8;
/** Room for ten priorities. */
const PRIORITY_PLACES = 16;
/** Start tags are told apart to this part of a row. */
export const PARTS_OF_ROW = 32;

/** Scores from here on are places. */
export const FIRST_SCORE = 11 * LEVEL;
/** Scores that places may take. */
export const SCORE_ROOM = 2 ** 53 - FIRST_SCORE;

/** Score of a start tag. @param arrivals how many jobs were added to the queue before */
export function scoreOf(start: number, priority: number, arrivals: number): number {
  return (
    FIRST_SCORE +
    (Math.floor(start * PARTS_OF_ROW) * PRIORITY_PLACES + priority) * ARRIVALS +
    (arrivals % ARRIVALS)
  );
}

/** Start tag of a score, rounded down to 1/32 of a row. */
export function startOf(score: number): number {
  return Math.floor((score - FIRST_SCORE) / ARRIVALS / PRIORITY_PLACES) / PARTS_OF_ROW;
}
