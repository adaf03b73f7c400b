/**
 * Logs something that may come a thousand times a minute, such as a connection that is refused: the first at once,
 * then one line at most every ten seconds, which says how many it stands for.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Logger } from './logger.js';

const EVERY_MS = 10_000;

/** A function that takes each error of one kind. No stack: where a refused connection was made is not the question. */
export function sparseErrors(
  logger: Logger,
  message: string,
  { clock = systemClock, everyMs = EVERY_MS }: { clock?: Clock; everyMs?: number } = {},
): (error: Error) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (error) => {
    const now = clock.now();
    if (now - loggedAt < everyMs) {
      unlogged++;
      return;
    }
    const more = unlogged > 0 ? { since_last_line: unlogged + 1 } : {};
    logger.warn(
      { error: error.message || (error as NodeJS.ErrnoException).code || error.name, ...more },
      message,
    );
    loggedAt = now;
    unlogged = 0;
  };
}
