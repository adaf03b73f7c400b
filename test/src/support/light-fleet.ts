/**
 * Workers in the test's own process whose runners load nothing: real desired state, real heartbeats, real queues, and
 * none of the weight. For how a fleet finds together.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readFleet } from '@remuda/core/fleet/heartbeats';
import { Deployments, type Edit } from '@remuda/core/models/deployments';
import { createLogger } from '@remuda/core/observability/logger';
import { JobQueues } from '@remuda/core/queue/job-queue';
import { queueName, queuePrefix } from '@remuda/core/queue/partitions';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { type Acceptance, RequestStore } from '@remuda/core/store/request-store';
import type { LoadedModel, ModelDeployment, WorkerHeartbeat } from '@remuda/schemas';
import {
  LightRunner,
  type LightRunnerOptions,
  Worker,
  type WorkerOptions,
  workerConfig,
} from '@remuda/worker';

export interface LightWorker {
  id: string;
  /** Its model repository. */
  models: string;
  worker: Worker;
  runner: LightRunner;
}

export interface LightWorkerOptions extends Omit<LightRunnerOptions, 'device'> {
  /** What reads the signature of a version that is not loaded. */
  inspect?: WorkerOptions['inspect'];
  id?: string;
  /** Files by path; default: those of the fleet, shared. */
  files?: Record<string, string>;
  env?: Record<string, string>;
}

/** Only bounds a failing test: the machine may be busy with others. */
const PATIENCE_MS = 60_000;

export class LightFleet {
  readonly workers: LightWorker[] = [];
  readonly redis: Redis;
  readonly keys: Keys;
  readonly store: RequestStore;
  readonly deployments: Deployments;
  readonly queues: JobQueues;
  /** The repository that workers share where they have none of their own. */
  readonly models: string;
  readonly url: string;
  readonly prefix: string;
  readonly #folders: string[] = [];

  constructor(files: Record<string, string>) {
    const url = process.env.REMUDA_TEST_REDIS_URL;
    if (!url) throw new Error('REMUDA_TEST_REDIS_URL is not set: run the tests with npm test');
    this.url = url;
    this.prefix = `light${process.pid}x${Math.random().toString(36).slice(2, 10)}`;
    this.redis = connectRedis({ url, role: 'worker', name: 'light-fleet', onError: () => {} });
    this.keys = new Keys({ prefix: this.prefix, shards: 1 });
    this.store = new RequestStore(this.redis, this.keys);
    this.deployments = new Deployments({ redis: this.redis, keys: this.keys });
    this.queues = new JobQueues({ redis: this.redis, keyPrefix: this.prefix, onError: () => {} });
    this.models = this.#folder(files);
  }

  async addWorker({
    id,
    files,
    env = {},
    inspect,
    ...runner
  }: LightWorkerOptions = {}): Promise<LightWorker> {
    const name = id ?? `worker-${this.workers.length}`;
    const models = files ? this.#folder(files) : this.models;
    const config = workerConfig({
      REDIS_URL: this.url,
      REMUDA_KEY_PREFIX: this.prefix,
      REMUDA_MODELS: models,
      REMUDA_WORKER_ID: name,
      ...env,
    });
    const light = new LightRunner({ device: 'cpu', ...runner });
    const logger = createLogger({ name: 'worker', level: 'silent' });
    const added = {
      id: name,
      models,
      worker: new Worker({ config, logger, newRunner: () => light, ...(inspect ? { inspect } : {}) }),
      runner: light,
    };
    this.workers.push(added);
    await added.worker.start();
    return added;
  }

  /** Writes into a repository, beside what is there. */
  write(folder: string, files: Record<string, string>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  }

  edit(model: string, change: Edit['change']): Promise<ModelDeployment> {
    return this.deployments.edit({ model, who: 'test', what: 'changed', detail: {}, change });
  }

  fleet(): Promise<WorkerHeartbeat[]> {
    return readFleet(this.redis, this.keys);
  }

  /** What a worker says of a version. */
  async stateOf(workerId: string, model: string, version: string): Promise<LoadedModel | undefined> {
    const worker = (await this.fleet()).find(({ worker_id }) => worker_id === workerId);
    return worker?.models.find((entry) => entry.model === model && entry.version === version);
  }

  /** Waits until a version is as wanted on a worker. @throws Error saying how it is instead */
  async until(
    workerId: string,
    [model, version]: readonly [string, string],
    holds: (state: LoadedModel) => boolean,
  ): Promise<LoadedModel> {
    let last: LoadedModel | undefined;
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(20)) {
      last = await this.stateOf(workerId, model, version);
      if (last && holds(last)) return last;
    }
    throw new Error(`${model}@${version} on ${workerId} is ${JSON.stringify(last)}`);
  }

  /** Waits until the heartbeats of all workers together are as wanted. */
  async untilFleet(holds: (workers: WorkerHeartbeat[]) => boolean): Promise<void> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
      if (holds(await this.fleet())) return;
    }
    throw new Error(`the fleet did not come to it within ${PATIENCE_MS} ms`);
  }

  /** Puts a job into a queue, as the API does, and rings where told. Its request has no record. */
  async enqueue(model: string, version: string, { ring = true } = {}): Promise<string> {
    const partition = { model, deviceClass: 'cpu', lane: 'interactive' } as const;
    const requestId = `job-${Math.random().toString(36).slice(2)}`;
    await this.queues.of(partition).add({
      requestId,
      nonce: 'n',
      version,
      traceId: 't',
      acceptedAt: Date.now(),
      deadline: 0,
      priority: 5,
      inline: false,
      units: [[1, 1, 'g']],
      tokenBase: 0,
    });
    if (ring) await this.redis.publish(this.keys.doorbell(), queueName(partition));
    return requestId;
  }

  /** A request with its record, as the API stores it, and its job. */
  async accept(model: string, version: string): Promise<string> {
    const requestId = await this.enqueue(model, version);
    await this.store.accept({
      ...{
        requestId,
        nonce: 'n',
        fingerprint: 'f',
        acceptedAt: Date.now(),
        deadline: 0,
        finishDeadline: 0,
        after: false,
        resultTtlMs: 60_000,
      },
      payloads: [Buffer.from('x')],
      document: {
        ...{ model, version, rows: 1, items: [null], hasItems: false, units: [[1, 1, 'g']], inline: true },
        ...{ tenant: 'default', traceId: 't', metadata: { priority: 5 }, notices: [] },
        route: { device_class: 'cpu', lane: 'interactive', reasons: [] },
      } as unknown as Acceptance['document'],
    });
    return requestId;
  }

  /** Waits until a queue holds no job. */
  async untilDrained(model: string): Promise<void> {
    const queue = this.queues.of({ model, deviceClass: 'cpu', lane: 'interactive' });
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(20)) {
      const { waiting, active } = await queue.depth();
      if (waiting + active === 0) return;
    }
    throw new Error(`jobs are left in the queue of ${model}: ${JSON.stringify(await queue.depth())}`);
  }

  /** Waits until a job has been given back that many times. */
  async untilReturned(model: string, requestId: string, times: number): Promise<void> {
    const key = `${queuePrefix(this.prefix)}:${queueName({ model, deviceClass: 'cpu', lane: 'interactive' })}:${requestId}`;
    let begun = 0;
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(20)) {
      begun = Number((await this.redis.hget(key, 'ats')) ?? 0);
      if (begun > times) return;
    }
    throw new Error(`${requestId} was taken up ${begun} times`);
  }

  async stop(): Promise<void> {
    await Promise.all(this.workers.map(({ worker }) => worker.stop()));
    await this.queues.close();
    const keys = await this.redis.keys(`${this.prefix}*`);
    if (keys.length > 0) await this.redis.unlink(...keys);
    closeRedis(this.redis);
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }

  #folder(files: Record<string, string>): string {
    const folder = mkdtempSync(join(tmpdir(), 'remuda-light-'));
    this.#folders.push(folder);
    this.write(folder, files);
    return folder;
  }
}

/** Files of a model: its versions hold their own numbers. */
export function modelFiles(name: string, versions: readonly number[], yaml = ''): Record<string, string> {
  return {
    [`${name}/model.yaml`]: `harness: onnx\n${yaml}\n`,
    ...Object.fromEntries(versions.map((version) => [`${name}/${version}/model.onnx`, `version ${version}`])),
  };
}
