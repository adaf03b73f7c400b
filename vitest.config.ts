// All tests of the workspace in one run; `npm test` gives them a Redis (REMUDA_TEST_REDIS_URL).
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'apps/*/src/**/*.test.ts',
      'infra/src/**/*.test.ts',
      'bench/src/**/*.test.ts',
      'test/src/**/*.test.ts',
    ],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
