/** What a request is told whose time was up: which deadline it was, where it had got to, and the prediction where that decided. */
import type { ItemError } from '@remuda/schemas';
import { itemError } from '../errors.js';

/** It waited too long. @param where it had got to */
export function startDeadlineError(where = 'before a worker took it up'): ItemError {
  return itemError('deadline_exceeded', `the deadline to start passed ${where}`, { deadline: 'start' });
}

/** It had not ended by then; what its run answers later is thrown away. */
export function finishDeadlineError(): ItemError {
  return itemError('deadline_exceeded', 'the deadline to finish passed before the request had ended', {
    deadline: 'finish',
  });
}

/** It was not run, since its run would have been over too late. Milliseconds from the moment of the decision. */
export function unreachableFinishError(expectedRunMs: number, leftMs: number): ItemError {
  const [expected, left] = [Math.ceil(expectedRunMs), Math.max(0, Math.floor(leftMs))];
  return itemError(
    'deadline_exceeded',
    `it was not run: a run is expected to take ${expected} ms, and ${left} ms were left until its deadline to finish`,
    { deadline: 'finish', expected_run_ms: expected, left_ms: left },
  );
}
