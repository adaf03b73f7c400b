import { expect, it } from 'vitest';
import type { LogFields, Logger } from './logger.js';
import { sparseErrors } from './sparse-log.js';

it('logs the first error at once, then one line for all of the next ten seconds', () => {
  let now = 0;
  const lines: LogFields[] = [];
  const logger = { warn: (fields: LogFields) => lines.push(fields) } as unknown as Logger;
  const log = sparseErrors(logger, 'Redis', { clock: { now: () => now, after: () => () => {} } });
  for (const at of [0, 1_000, 9_999, 10_000, 10_001]) {
    now = at;
    log(new Error(`refused at ${at}`));
  }
  expect(lines).toEqual([{ error: 'refused at 0' }, { error: 'refused at 10000', since_last_line: 3 }]);
});
