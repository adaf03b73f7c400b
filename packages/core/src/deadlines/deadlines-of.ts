/**
 * The two deadlines of a request as points in time: by when its run must begin, and by when it must have ended. Each is
 * the earlier of what was asked as a time-out and as a point in time. A point in time that is past is refused.
 */
import { dotted, type RequestMetadata, type Violation } from '@remuda/schemas';
import { RemudaError } from '../errors.js';

/** Unix milliseconds; 0: there is none. */
export interface Deadlines {
  start: number;
  finish: number;
}

/** @param now of the acceptance, from which time-outs count, Unix milliseconds */
export function deadlinesOf(metadata: RequestMetadata | undefined, now: number): Deadlines {
  return {
    start: earliest(now, metadata?.timeout_ms, metadata?.start_by),
    finish: earliest(now, metadata?.finish_timeout_ms, metadata?.finish_by),
  };
}

function earliest(now: number, timeoutMs: number | undefined, by: string | undefined): number {
  const times: number[] = [];
  if (timeoutMs !== undefined) times.push(now + timeoutMs);
  if (by !== undefined) times.push(Date.parse(by));
  return times.length === 0 ? 0 : Math.min(...times);
}

/**
 * What speaks against a point in time that is past; undefined: nothing.
 * @param path where the request stands in the body
 */
export function pastDeadline(
  metadata: RequestMetadata | undefined,
  now: number,
  path: readonly PropertyKey[] = [],
): RemudaError | undefined {
  const violations: Violation[] = [];
  for (const name of ['start_by', 'finish_by'] as const) {
    const by = metadata?.[name];
    if (by === undefined || Date.parse(by) > now) continue;
    const expected = `a point in time to come: it is ${new Date(now).toISOString()} here`;
    violations.push({ path: dotted([...path, 'metadata', name]), expected, received: by });
  }
  if (violations.length === 0) return undefined;
  const text = violations.map(
    ({ path: at, expected, received }) => `${at}: expected ${expected}, received ${received}`,
  );
  return new RemudaError('invalid_request', text.join('; '), { violations });
}
