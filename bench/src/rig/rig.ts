/**
 * A whole Remuda for one bench: a private Redis (append-only file, everysec), a real API process and real worker
 * processes with their runners, as in production. Owns them all: `stop` leaves nothing behind.
 *
 * Log level is production's own default (info: the life events of every request are written, to a file) unless the
 * options say otherwise. REMUDA_BENCH_PROF=DIR writes V8 CPU profiles of every process there.
 */
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Partition, queueName, queuePrefix } from '@remuda/core/queue/partitions';
import { Keys } from '@remuda/core/store/keys';
import { connectRedis, type Redis } from '@remuda/core/store/redis';
import { RequestStore } from '@remuda/core/store/request-store';
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import type { Fleet } from '@remuda/schemas';
import { Queue } from 'bullmq';
import { request } from 'undici';
import { type BenchModels, makeRepository, ROOT } from './bench-models.js';
import { type BulkDesk, openBulkDesk } from './bulk-desk.js';
import { type NodeServer, startServer } from './node-process.js';
import { childrenOf, cpuMicros, isCoordinator } from './proc-stat.js';

export const KEY_PREFIX = 'bench';
/** The API refuses what would go over the limits of a queue; a backlog of the bench is meant to be deep. */
const DEEP_QUEUES = {
  REMUDA_API_MAX_QUEUE_DEPTH: '1000000',
  REMUDA_API_MAX_QUEUE_ROWS: '0',
  REMUDA_API_MAX_QUEUE_BYTES: '0',
};

export interface RigOptions {
  models: BenchModels;
  logLevel?: string;
  /** Further settings of the API. */
  apiEnv?: Record<string, string>;
  /** tcp: as `npm start` runs it. unix: over the socket of the same server. */
  redisOver?: 'tcp' | 'unix';
}

export interface WorkerOptions {
  /** Default: all models of the repository. */
  models?: readonly string[];
  instances?: number;
  /** Drives bulk jobs too. */
  bulk?: boolean;
  /** Further settings. */
  env?: Record<string, string>;
}

/** CPU time in microseconds. */
export interface CpuUse {
  api: number;
  worker: number;
  runner: number;
  redis: number;
}

/** Processes by what they do. */
export interface RigPids {
  api: number[];
  worker: number[];
  runner: number[];
  coordinator: number[];
  redis: number[];
}

export class Rig {
  readonly #options: RigOptions;
  readonly #folder: string;
  readonly #server: PrivateRedis;
  readonly redis: Redis;
  readonly store: RequestStore;
  readonly #files: string;
  #bulk: BulkDesk | undefined;
  #api: NodeServer | undefined;
  #workers: NodeServer[] = [];
  readonly #removeFolder = (): void => rmSync(this.#folder, { recursive: true, force: true });

  static async start(options: RigOptions): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), 'remuda-bench-'));
    await makeRepository(join(folder, 'models'), options.models);
    const server = await startPrivateRedis({ unixSocket: options.redisOver === 'unix' });
    const rig = new Rig(options, folder, server);
    try {
      await rig.#startApi();
    } catch (error) {
      await rig.stop();
      throw error;
    }
    return rig;
  }

  private constructor(options: RigOptions, folder: string, server: PrivateRedis) {
    this.#options = options;
    this.#folder = folder;
    this.#server = server;
    this.redis = connectRedis({ url: server.url, role: 'runner', name: 'bench', onError: () => {} });
    process.once('exit', this.#removeFolder);
    this.#files = join(folder, 'files');
    this.store = new RequestStore(this.redis, new Keys({ prefix: KEY_PREFIX, shards: 1 }));
  }

  get apiUrl(): string {
    return this.#api?.url ?? '';
  }

  /** What bulk jobs are made and asked after with. */
  async openBulk(): Promise<BulkDesk> {
    this.#bulk ??= await openBulkDesk({
      redisUrl: this.#server.url,
      keyPrefix: KEY_PREFIX,
      models: join(this.#folder, 'models'),
      files: this.#files,
    });
    return this.#bulk;
  }

  get workerUrls(): string[] {
    return this.#workers.map((worker) => worker.url);
  }

  get pids(): RigPids {
    const worker = this.#workers.map(({ pid }) => pid);
    const api = this.#api ? [this.#api.pid] : [];
    const children = worker.flatMap(childrenOf);
    const coordinator = children.filter(isCoordinator);
    const runner = children.filter((pid) => !coordinator.includes(pid));
    return { api, worker, runner, coordinator, redis: [this.#server.pid] };
  }

  /** CPU time so far of all processes that live now. Take the difference of two readings. */
  cpu(): CpuUse {
    const sum = (pids: number[]): number => pids.reduce((total, pid) => total + cpuMicros(pid), 0);
    const { api, worker, runner, redis } = this.pids;
    return { api: sum(api), worker: sum(worker), runner: sum(runner), redis: sum(redis) };
  }

  /** Returns when its models are loaded and warm. */
  async startWorker({ models = [], instances, bulk = false, env = {} }: WorkerOptions = {}): Promise<void> {
    this.#workers.push(
      await startServer({
        script: join(ROOT, 'apps/worker/dist/main.js'),
        env: {
          ...this.#sharedEnv(),
          REMUDA_WORKER_MODELS: models.join(),
          ...(instances === undefined ? {} : { REMUDA_WORKER_INSTANCES: String(instances) }),
          ...(bulk ? { REMUDA_WORKER_BULK_JOBS: '1' } : {}),
          ...env,
        },
        logFile: join(this.#folder, 'worker.log'),
        execArgv: profiling(),
      }),
    );
  }

  async stopWorkers(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }

  /** A call of the admin API. @throws Error with what any refusal said */
  async admin(method: 'GET' | 'PUT', path: string, body?: object): Promise<unknown> {
    return this.#call(method, `/v1/admin/models/${path}`, body);
  }

  async fleet(): Promise<Fleet> {
    return (await this.#call('GET', '/v1/fleet')) as Fleet;
  }

  async #call(method: 'GET' | 'PUT', path: string, body?: object): Promise<unknown> {
    const headers = body ? { 'content-type': 'application/json' } : {};
    const text = body && JSON.stringify(body);
    const response = await request(`${this.apiUrl}${path}`, { method, headers, body: text });
    if (response.statusCode >= 300)
      throw new Error(`${method} ${path}: ${response.statusCode} ${await response.body.text()}`);
    return response.body.json();
  }

  /** Holds a queue back, so that a backlog can be built while warm workers stand ready; false lets it go. */
  async hold(model: string, held: boolean): Promise<void> {
    const partition: Partition = { model, deviceClass: 'cpu', lane: 'interactive' };
    const connection = this.redis.duplicate();
    const queue = new Queue(queueName(partition), {
      connection,
      prefix: queuePrefix(KEY_PREFIX),
      skipVersionCheck: true,
    });
    await (held ? queue.pause() : queue.resume());
    await queue.close();
    connection.disconnect();
  }

  /** A backlog of large inputs makes Redis rewrite its file; that is of the filling, not of the drain. */
  async untilRedisRests(): Promise<void> {
    while (/aof_rewrite_(in_progress|scheduled):1/.test(await this.redis.info('persistence')))
      await sleep(100);
  }

  /** Forgets all requests, so that the results of one round do not weigh on the next. Only while nothing is open. */
  async forgetRequests(): Promise<void> {
    const match = `${KEY_PREFIX}:{r0}:*`;
    for (let cursor = '0'; ; ) {
      const [next, keys] = await this.redis.scan(cursor, 'MATCH', match, 'COUNT', 1000);
      if (keys.length > 0) await this.redis.unlink(...keys);
      cursor = next;
      if (cursor === '0') return;
    }
  }

  /** INFO commandstats, the commands with the most time first. */
  async commandStats(): Promise<string> {
    const usecOf = (line: string): number => Number(/usec=(\d+)/.exec(line)?.[1] ?? 0);
    const lines = (await this.redis.info('commandstats'))
      .split('\r\n')
      .filter((line) => line.startsWith('cmdstat_'));
    return lines.sort((a, b) => usecOf(b) - usecOf(a)).join('\n');
  }

  async stop(): Promise<void> {
    await this.#bulk?.close();
    await this.stopWorkers();
    await this.#api?.stop();
    this.redis.disconnect();
    await this.#server.stop();
    process.off('exit', this.#removeFolder);
    this.#removeFolder();
  }

  async #startApi(): Promise<void> {
    this.#api = await startServer({
      script: join(ROOT, 'apps/producer-api/dist/main.js'),
      env: { ...this.#sharedEnv(), REMUDA_API_PORT: '0', ...DEEP_QUEUES, ...this.#options.apiEnv },
      logFile: join(this.#folder, 'api.log'),
      execArgv: profiling(),
    });
  }

  #sharedEnv(): Record<string, string> {
    const overSocket = this.#options.redisOver === 'unix' && this.#server.socketPath !== undefined;
    return {
      REDIS_URL: overSocket ? `unix://${this.#server.socketPath}` : this.#server.url,
      REMUDA_KEY_PREFIX: KEY_PREFIX,
      REMUDA_MODELS: join(this.#folder, 'models'),
      REMUDA_FILES: this.#files,
      // Inputs and outputs of the bench lie in temporary folders, images in the checkout.
      REMUDA_BULK_PATHS: [tmpdir(), ROOT].join(),
      ...(this.#options.logLevel ? { REMUDA_LOG_LEVEL: this.#options.logLevel } : {}),
    };
  }
}

function profiling(): string[] {
  const folder = process.env.REMUDA_BENCH_PROF;
  return folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : [];
}

/** What was used between two readings of Rig.cpu. */
export function cpuBetween(before: CpuUse, after: CpuUse): CpuUse & { total: number } {
  const used = {
    api: after.api - before.api,
    worker: after.worker - before.worker,
    runner: after.runner - before.runner,
    redis: after.redis - before.redis,
  };
  return { ...used, total: used.api + used.worker + used.runner + used.redis };
}
