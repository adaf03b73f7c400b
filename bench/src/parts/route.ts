/**
 * route: how long the decision takes to which device class a request goes, with 200 models on each of 500 simulated
 * workers, half of them with a GPU; and how long it takes to build the index behind it, once for each view of the fleet.
 * Nothing runs but the decision: facts are in memory, as they are in the API.
 */
import { type ClassIndex, indexClasses } from '@remuda/core/fleet/class-index';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { QueueDepths } from '@remuda/core/queue/queue-depths';
import { resolveRoute } from '@remuda/core/requests/resolve-route';
import { RowMeans } from '@remuda/core/requests/row-means';
import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import { percentile, round } from '../rig/statistics.js';
import type { PartContext } from './part.js';

export interface RouteFigures {
  models: number;
  workers: number;
  p50_us: number;
  p99_us: number;
  /** Once for each view of the fleet, every 1.5 s. */
  index_ms: number;
}

const MODELS = 200;
const WORKERS = 500;
const AFFINITY = ['cuda', 'cpu'];

export async function route(context: PartContext): Promise<RouteFigures> {
  const workers = Array.from({ length: WORKERS }, (_, i) => heartbeat(i));
  const builds: number[] = [];
  let index: ClassIndex = new Map();
  for (let i = 0; i < 10; i++) {
    const begun = performance.now();
    index = indexClasses(workers);
    builds.push(performance.now() - begun);
  }
  const times = decide(index, context.quick ? 20_000 : 200_000);
  const figures = {
    models: MODELS,
    workers: WORKERS,
    p50_us: round(percentile(times, 50)),
    p99_us: round(percentile(times, 99)),
    index_ms: round(percentile(builds, 50)),
  };
  context.log(`route: p50 ${figures.p50_us} µs, p99 ${figures.p99_us} µs, index ${figures.index_ms} ms`);
  return figures;
}

/** Microseconds of each decision, after a warm-up. */
function decide(index: ClassIndex, count: number): number[] {
  const depth = async () => ({ waiting: 3, active: 0 });
  const queues = { of: () => ({ depth }) } as unknown as ConstructorParameters<
    typeof QueueDepths
  >[0]['queues'];
  const deps = {
    fleet: {
      classFacts: (model: string, version?: string) => index.get(`${model}@${version}`) ?? [],
      ageMs: 700,
    },
    depths: new QueueDepths({ queues, clock: systemClock }),
    rowMeans: new RowMeans(),
    clock: systemClock,
  };
  const times = new Array<number>(count);
  for (let i = -count / 10; i < count; i++) {
    const model = `model-${Math.abs(i * 7) % MODELS}`;
    const question = {
      model,
      version: '1',
      requested: undefined,
      affinity: AFFINITY,
      rows: 1 + (Math.abs(i) % 8),
    };
    const begun = process.hrtime.bigint();
    resolveRoute({ ...question, lane: 'interactive' }, deps);
    const took = Number(process.hrtime.bigint() - begun) / 1_000;
    if (i >= 0) times[i] = took;
  }
  return times;
}

function heartbeat(worker: number): WorkerHeartbeat {
  const device = worker % 2 === 0 ? 'cuda:0' : 'cpu';
  const models = Array.from(
    { length: MODELS },
    (_, i): LoadedModel => loaded(`model-${i}`, device, worker + i),
  );
  return { worker_id: `worker-${worker}`, state: 'ready', models } as unknown as WorkerHeartbeat;
}

function loaded(model: string, device: string, seed: number): LoadedModel {
  return {
    model,
    version: '1',
    digest: 'd',
    device,
    provider: 'cpu',
    state: 'ready',
    reason: null,
    load_mode: 'eager',
    instances: 1,
    memory_bytes: null,
    last_used_at: null,
    backlog_rows: seed % 20,
    seconds_per_row: (device === 'cpu' ? 0.01 : 0.001) * (1 + (seed % 5) / 10),
    run_seconds: 0.01,
    breaker: 'closed',
  };
}
