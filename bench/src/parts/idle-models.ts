/**
 * idle-models: one worker with many registered models that are loaded on demand and that nobody asks for. What it costs
 * (CPU of worker and runner, connections to Redis), how long it takes to be ready, and the first request of one of them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerHeartbeat } from '@remuda/schemas';
import { sendLoad } from '../load/load-job.js';
import { cpuBetween, Rig } from '../rig/rig.js';
import { round } from '../rig/statistics.js';
import type { PartContext } from './part.js';

export interface IdleModelsFigures {
  models: number;
  /** From the start of the process to ready. */
  start_ms: number;
  /** Per cent of one core, worker and runner together, and the runner's part of it. */
  cpu_percent: number;
  runner_cpu_percent: number;
  redis_cpu_percent: number;
  /** Connections to Redis that the worker and its runner hold. */
  connections: number;
  loaded: number;
  /** The first request of a model, from the call to the result: its load is in it. */
  first_request_ms: number;
}

const MODELS = 200;
/** Heartbeats and looks of a worker come every few seconds: several of each must be in the stretch. */
const STRETCH_MS = { quick: 10_000, full: 30_000 };

export async function idleModels(context: PartContext): Promise<IdleModelsFigures> {
  const rig = await Rig.start({ models: { onDemand: MODELS }, ...context.rig });
  try {
    const before = await connections(rig);
    const begun = performance.now();
    await rig.startWorker();
    const startMs = performance.now() - begun;
    await sleep(2_000);
    const cpuBefore = rig.cpu();
    const stretch = context.quick ? STRETCH_MS.quick : STRETCH_MS.full;
    await sleep(stretch);
    const used = cpuBetween(cpuBefore, rig.cpu());
    const percent = (micros: number): number => round(micros / 10 / stretch);
    const held = (await connections(rig)) - before;
    const loaded = await loadedModels(rig);
    const firstMs = await firstRequest(rig, context);
    const figures = {
      models: MODELS,
      start_ms: Math.round(startMs),
      cpu_percent: percent(used.worker + used.runner),
      runner_cpu_percent: percent(used.runner),
      redis_cpu_percent: percent(used.redis),
      connections: held,
      loaded,
      first_request_ms: Math.round(firstMs),
    };
    context.log(`idle-models: ${JSON.stringify(figures)}`);
    return figures;
  } finally {
    await rig.stop();
  }
}

async function connections(rig: Rig): Promise<number> {
  const text = (await rig.redis.client('LIST')) as string;
  return text.trim().split('\n').length;
}

async function loadedModels(rig: Rig): Promise<number> {
  const { workers } = (await (await fetch(`${rig.apiUrl}/v1/fleet`)).json()) as {
    workers: WorkerHeartbeat[];
  };
  return workers.flatMap((worker) => worker.models.filter(({ state }) => state !== 'unloaded')).length;
}

async function firstRequest(rig: Rig, { ledger }: PartContext): Promise<number> {
  const { ids, latencies } = await sendLoad({
    url: rig.apiUrl,
    model: 'on-demand-7',
    body: { kind: 'tensor', rowShape: [1, 4] },
    count: 1,
    connections: 1,
    waitS: 30,
    pauseMs: 0,
  });
  await ledger.check(rig, ids);
  return latencies[0] as number;
}
