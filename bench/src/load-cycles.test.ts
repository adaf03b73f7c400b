/** The short form of the load cycles: too few for the last per cent, enough to show a session that is not released. */
import { expect, it } from 'vitest';
import { runLoadCycles } from './parts/load-cycles.js';

it('a runner gives back the memory of models that are unloaded', async () => {
  const cycles = await runLoadCycles({ cycles: 5, models: ['text-recognition'] });
  expect(cycles.samples_mb).toHaveLength(5);
  // Two sessions of 30 MB and more each: one that stayed, in each cycle, would be far beyond.
  expect(cycles.ratio).toBeLessThan(1.2);
}, 180_000);
