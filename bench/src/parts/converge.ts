/**
 * converge: twenty workers, simulated in one process of this machine, follow a new desired state. Each has the real
 * converger, heartbeats and queues; only what loads and runs models is light (15 ms a load). All models get another
 * version at once; the clock runs from the edits until the heartbeats of every worker say that it has all of them ready.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readFleet } from '@remuda/core/fleet/heartbeats';
import { Deployments } from '@remuda/core/models/deployments';
import { createLogger } from '@remuda/core/observability/logger';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { LightRunner, Worker, workerConfig } from '@remuda/worker';
import { percentile, round } from '../rig/statistics.js';
import type { PartContext } from './part.js';

export interface ConvergeFigures {
  workers: number;
  models: number;
  rounds: number;
  /** From the edits until the whole fleet is as wanted and has said so: median and worst of the rounds. */
  seconds: number;
  worst_seconds: number;
  /** CPU of the process that holds all the workers, for each worker: milliseconds until then. */
  cpu_ms_per_worker: number;
}

const WORKERS = 20;
const MODELS = 10;
const PREFIX = 'converge';
/** The version before is let go some seconds after the next has taken over; the next round begins from rest. */
const REST_MS = 12_000;
const LOOK_EVERY_MS = 25;
const STUCK_AFTER_MS = 60_000;

interface Round {
  seconds: number;
  cpuMs: number;
}

export async function converge(context: PartContext): Promise<ConvergeFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-converge-'));
  const models = Array.from({ length: MODELS }, (_, i) => `model-${i}`);
  await Promise.all(models.map((model) => writeModel(folder, model)));
  const server = await startPrivateRedis({});
  const redis = connectRedis({ url: server.url, role: 'worker', name: 'converge', onError: () => {} });
  const keys = new Keys({ prefix: PREFIX, shards: 1 });
  const deployments = new Deployments({ redis, keys });
  const keep = (version: string) =>
    Promise.all(
      models.map((model) =>
        deployments.edit({
          ...{ model, who: 'bench', what: 'changed', detail: {} },
          change: (now) => ({ ...now, version_policy: { only: [version] } }),
        }),
      ),
    );
  const allReady = async (version: string): Promise<boolean> =>
    (await readFleet(redis, keys)).flatMap((worker) =>
      worker.models.filter((loaded) => loaded.version === version && loaded.state === 'ready'),
    ).length ===
    WORKERS * MODELS;
  const workers: Worker[] = [];
  try {
    await keep('1');
    workers.push(...(await startWorkers(server.url, folder)));
    await sleep(REST_MS);
    const rounds: Round[] = [];
    for (let i = 0; i < (context.quick ? 1 : 2 * context.rounds); i++) {
      const version = i % 2 === 0 ? '2' : '1';
      rounds.push(
        await measured(
          () => keep(version),
          () => allReady(version),
        ),
      );
      context.log(`converge: ${rounds.at(-1)?.seconds.toFixed(2)} s`);
      await sleep(REST_MS);
    }
    return figuresOf(rounds);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    closeRedis(redis);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measured(edit: () => Promise<unknown>, holds: () => Promise<boolean>): Promise<Round> {
  const begun = performance.now();
  const cpu = process.cpuUsage();
  await edit();
  while (!(await holds())) {
    if (performance.now() - begun > STUCK_AFTER_MS)
      throw new Error('the fleet does not come to the new state');
    await sleep(LOOK_EVERY_MS);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - begun) / 1_000, cpuMs: (user + system) / 1_000 };
}

async function startWorkers(redisUrl: string, folder: string): Promise<Worker[]> {
  const logger = createLogger({ name: 'worker', level: 'silent' });
  const workers = Array.from({ length: WORKERS }, (_, i) => {
    const config = workerConfig({
      ...{ REDIS_URL: redisUrl, REMUDA_KEY_PREFIX: PREFIX, REMUDA_MODELS: folder },
      REMUDA_WORKER_ID: `worker-${i}`,
    });
    return new Worker({ config, logger, newRunner: ({ device }) => new LightRunner({ device }) });
  });
  await Promise.all(workers.map((worker) => worker.start()));
  return workers;
}

async function writeModel(folder: string, model: string): Promise<void> {
  for (const version of ['1', '2']) {
    await mkdir(join(folder, model, version), { recursive: true });
    await writeFile(join(folder, model, version, 'model.onnx'), `version ${version}`);
  }
  await writeFile(join(folder, model, 'model.yaml'), 'harness: onnx\n');
}

function figuresOf(rounds: readonly Round[]): ConvergeFigures {
  const seconds = rounds.map((one) => one.seconds);
  const cpu = percentile(
    rounds.map((one) => one.cpuMs),
    50,
  );
  return {
    workers: WORKERS,
    models: MODELS,
    rounds: rounds.length,
    seconds: round(percentile(seconds, 50)),
    worst_seconds: round(Math.max(...seconds)),
    cpu_ms_per_worker: round(cpu / WORKERS),
  };
}
