/**
 * The last look at deadlines, just before a native run: what waited too long, or would be over too late, is not run.
 * Times are performance.now() of this process; what is left of a deadline came from Redis with the claim.
 */
import {
  finishDeadlineError,
  startDeadlineError,
  unreachableFinishError,
} from '../deadlines/deadline-errors.js';
import type { ItemRun } from './item-run.js';

/** Marks what of these cannot be run in time. */
export function dropLate(items: readonly ItemRun[], now: number, expectedRunMs = 0): void {
  for (const item of items) {
    if (!item.limits || item.failed || item.runFailed) continue;
    const { startBy, finishBy } = item.limits;
    if (finishBy <= now) item.failed = finishDeadlineError();
    else if (!item.begun && startBy <= now) item.failed = startDeadlineError('while it waited for its run');
    else if (finishBy <= now + expectedRunMs)
      item.failed = unreachableFinishError(expectedRunMs, finishBy - now);
    else continue;
    item.expired = true;
  }
}

/** Until when its run may still begin; Infinity: it has no deadline. */
export function latestStart(
  { limits, begun }: ItemRun,
  { expectedRunMs = 0 }: { expectedRunMs?: number },
): number {
  if (!limits) return Number.POSITIVE_INFINITY;
  const finish = limits.finishBy - expectedRunMs;
  return begun ? finish : Math.min(limits.startBy, finish);
}
