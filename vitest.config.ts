// All tests of the workspace in one run; `npm test` gives them a Redis (REMUDA_TEST_REDIS_URL).
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    pool: 'forks',
    // One more than the cores of a small machine: many tests wait for processes, Redis or a clock.
    maxWorkers: 3,
    // Tests of the harness load the native library in their own process.
    env: { ORT_DISABLE_TELEMETRY: '1' },
    // No test asks how fast the machine is: these only end what would never end.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    // Two of these leave nothing behind: a process for each of 240 files would load the same modules 240 times. They are
    // two, since schemas have names that a process may know once, and the one has them from the sources.
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts', 'infra/src/**/*.test.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/src/{integration,contract}/**/*.test.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'whole', include: ['bench/src/**/*.test.ts', 'test/src/{docs,e2e}/**/*.test.ts'] },
      },
    ],
  },
});
