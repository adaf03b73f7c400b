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
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: [
            'packages/*/src/**/*.test.ts',
            'apps/*/src/**/*.test.ts',
            'infra/src/**/*.test.ts',
            'test/src/integration/**/*.test.ts',
            'test/src/contract/**/*.test.ts',
          ],
          // They leave nothing behind; a process for each of 260 files would load the same modules 260 times.
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
