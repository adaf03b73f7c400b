/**
 * load-cycles: memory of a runner whose models come and go. Each cycle loads the models and
 * unloads them; what the process holds after the last cycle is compared with what it held after the third, by when
 * the native library and the heaps have found their size.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runnerEnvironment } from '@remuda/core/inference/runner-environment';
import { RunnerProcess } from '@remuda/core/inference/runner-process';
import { type RepositoryModel, scanRepository, toModelSource } from '@remuda/core/repository/manifests';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { makeRepository } from '../rig/bench-models.js';
import { rssBytes } from '../rig/proc-stat.js';
import { round } from '../rig/statistics.js';
import type { PartContext } from './part.js';

export interface LoadCyclesOptions {
  /** Default 50. */
  cycles?: number;
  /** Real models by name. Default text-recognition and text-direction. */
  models?: readonly string[];
  log?(line: string): void;
}

export interface LoadCycleFigures {
  cycles: number;
  /** Resident MB with nothing loaded, after the third cycle and after the last. */
  third_mb: number;
  last_mb: number;
  /** last_mb / third_mb */
  ratio: number;
  /** After each cycle, in order. */
  samples_mb: number[];
}

/** The cycle that the last one is compared with. */
const WARM_AFTER = 3;
const MB = 2 ** 20;

export function loadCycles({ quick, log }: PartContext): Promise<LoadCycleFigures> {
  return runLoadCycles({ cycles: quick ? 10 : 50, log });
}

export async function runLoadCycles({
  cycles = 50,
  models = ['text-recognition', 'text-direction'],
  log = () => {},
}: LoadCyclesOptions = {}): Promise<LoadCycleFigures> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-load-cycles-'));
  const redis = await startPrivateRedis();
  const runner = new RunnerProcess({
    device: 'cpu',
    store: { url: redis.url, keyspace: { prefix: 'bench', shards: 1 } },
    environment: runnerEnvironment(process.env),
    log: () => {},
  });
  try {
    await makeRepository(join(folder, 'models'), {
      real: Object.fromEntries(models.map((name) => [name, {}])),
    });
    await runner.start();
    const found = await scanRepository(join(folder, 'models'));
    return figuresOf(await cycle(runner, found.models, cycles, log));
  } finally {
    await runner.stop();
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function cycle(
  runner: RunnerProcess,
  models: readonly RepositoryModel[],
  cycles: number,
  log: (line: string) => void,
): Promise<number[]> {
  const pid = runner.status().pid as number;
  const sources = models.map((model) => toModelSource(model, model.defaultVersion ?? '', 'cpu'));
  const samples: number[] = [];
  for (let i = 1; i <= cycles; i++) {
    for (const source of sources) await runner.load(source);
    for (const { modelId } of sources) await runner.unload(modelId);
    samples.push(rssBytes(pid) / MB);
    if (i === WARM_AFTER || i % 10 === 0)
      log(`load-cycles: ${samples.at(-1)?.toFixed(1)} MB after ${i} cycles`);
  }
  // A runner that was replaced on the way would look flat.
  if (runner.status().pid !== pid) throw new Error('the runner did not survive the load cycles');
  return samples;
}

function figuresOf(samples: readonly number[]): LoadCycleFigures {
  const third = samples[WARM_AFTER - 1];
  const last = samples.at(-1);
  if (third === undefined || last === undefined) throw new Error(`at least ${WARM_AFTER} cycles are needed`);
  return {
    cycles: samples.length,
    third_mb: round(third, 1),
    last_mb: round(last, 1),
    ratio: round(last / third, 3),
    samples_mb: samples.map((sample) => round(sample, 1)),
  };
}
