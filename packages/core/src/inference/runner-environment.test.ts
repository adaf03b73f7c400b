import { expect, test } from 'vitest';
import { runnerEnvironment } from './runner-environment.js';

test('a runner inherits its environment, with the allocator told to give memory back', () => {
  expect(runnerEnvironment({ HOME: '/root' })).toEqual({
    HOME: '/root',
    MALLOC_ARENA_MAX: '1',
    MALLOC_MMAP_THRESHOLD_: '2097152',
    MALLOC_TRIM_THRESHOLD_: '4194304',
  });
});

test('what is set already is left as it is', () => {
  expect(runnerEnvironment({ MALLOC_ARENA_MAX: '8' })).toMatchObject({ MALLOC_ARENA_MAX: '8' });
});
