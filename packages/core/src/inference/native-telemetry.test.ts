import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RunnerProcess } from './runner-process.js';
import { makeModels, sourceOf } from './test-models.fixture.js';

test('a runner that has loaded a model has written nothing into the home folder', async () => {
  const home = mkdtempSync(join(tmpdir(), 'remuda-home-'));
  const { ORT_DISABLE_TELEMETRY: _, ...environment } = process.env;
  const runner = new RunnerProcess({
    device: 'cpu',
    store: { url: 'redis://127.0.0.1:1', keyspace: { prefix: 'none', shards: 1 } },
    log: () => {},
    environment: { ...environment, HOME: home },
  });
  try {
    await runner.start();
    await runner.load(sourceOf(await makeModels(), 'identity-fp32'));
  } finally {
    await runner.stop();
  }
  expect(readdirSync(home, { recursive: true })).toEqual([]);
});
