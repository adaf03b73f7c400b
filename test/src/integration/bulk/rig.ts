/** Bulk jobs with a real Redis, real files and real coordinator processes, and a door that answers at once. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createBulkService } from '@remuda/core/bulk/bulk-service';
import type { BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { redisDoor, STEER } from '@remuda/core/bulk/coordinator/redis-door.fixture';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { createLogger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import { BulkQueue } from '@remuda/core/queue/bulk-queue';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { type BulkJob, BulkJobCreate, type BulkJobCreateInput } from '@remuda/schemas';
import { BulkHost } from '@remuda/worker';

const PATIENCE_MS = 60_000;
const CALLER = { tenant: 'default', keyId: null, traceId: '0'.repeat(31).concat('1') };

export class BulkRig {
  readonly folder = mkdtempSync(join(tmpdir(), 'remuda-bulk-'));
  readonly url: string;
  readonly prefix = `bulk${process.pid}x${Math.random().toString(36).slice(2, 10)}`;
  readonly keys = new Keys({ prefix: this.prefix, shards: 1 });
  readonly redis: Redis;
  readonly store: BulkJobStore;
  readonly queue: BulkQueue;
  readonly bulk: BulkUseCases;
  readonly metrics: Metrics = createMetrics({ processMetrics: false });
  readonly log: Record<string, unknown>[] = [];
  readonly hosts: BulkHost[] = [];

  constructor() {
    const url = process.env.REMUDA_TEST_REDIS_URL;
    if (!url) throw new Error('REMUDA_TEST_REDIS_URL is not set: run the tests with npm test');
    this.url = url;
    const onError = (): void => {};
    this.redis = connectRedis({ url, role: 'worker', name: 'bulk-rig', onError });
    this.store = new BulkJobStore(this.redis, this.keys);
    this.queue = new BulkQueue({ redis: this.redis, keyPrefix: this.prefix, onError });
    const files = createBulkFiles({ folder: this.#files(), redis: this.redis, keys: this.keys });
    const { resolve } = redisDoor(this.redis, `${this.prefix}:door`);
    this.bulk = createBulkService({
      ...{ store: this.store, queue: this.queue, files, filesFolder: this.#files() },
      resolve: ({ model, version }) => resolve(model, version),
    });
  }

  /** A worker's part that coordinates. */
  async host(options: { filesFolder?: string } = {}): Promise<BulkHost> {
    const destination = { write: (line: string) => void this.log.push(JSON.parse(line)) };
    const host = new BulkHost({
      ...{ jobs: 4, redis: this.redis, keys: this.keys, lockMs: 2_000, drainMs: 10_000, clock: systemClock },
      ...{ logger: createLogger({ name: 'host', level: 'info', destination }), metrics: this.metrics },
      init: {
        ...{
          redisUrl: this.url,
          keyspace: this.keys.space,
          filesFolder: options.filesFolder ?? this.#files(),
        },
        ...{ modelsFolder: this.folder, priorityStepRows: 0, roots: null, allowed: null },
        ...{ logLevel: 'silent', logPretty: false },
      },
      environment: process.env,
      entry: new URL(
        '../../../../packages/core/dist/bulk/coordinator/coordinator-child.fixture.js',
        import.meta.url,
      ),
      onError: () => {},
    });
    await host.start();
    this.hosts.push(host);
    return host;
  }

  file(name: string, text?: string): string {
    const path = join(this.folder, name);
    if (text !== undefined) writeFileSync(path, text);
    return path;
  }

  text(name: string): string {
    return readFileSync(this.file(name), 'utf8');
  }

  /** A JSONL file with one number a row. */
  rows(name: string, xs: readonly number[]): string {
    return this.file(name, xs.map((x, i) => `${JSON.stringify({ id: `r${i}`, x })}\n`).join(''));
  }

  create(input: string, output: string, over: Partial<BulkJobCreateInput> = {}): Promise<BulkJob> {
    const { output: also, ...rest } = over;
    const wanted = BulkJobCreate.parse({
      ...{
        model: 'doubler',
        input: { uri: input },
        map: { x: 'x' },
        id_column: 'id',
        chunk_rows: 8,
        ...rest,
      },
      output: { uri: this.file(output), ...also },
    });
    return this.bulk.create(wanted, CALLER);
  }

  async until(id: string, is: (job: BulkJob) => boolean): Promise<BulkJob> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(10)) {
      const job = await this.bulk.get(id);
      if (is(job)) return job;
    }
    throw new Error(`still ${JSON.stringify(await this.bulk.get(id))}`);
  }

  status(id: string, ...wanted: BulkJob['status'][]): Promise<BulkJob> {
    return this.until(id, ({ status }) => wanted.includes(status));
  }

  async steer(field: keyof typeof STEER, on: boolean): Promise<void> {
    const key = `${this.prefix}:door`;
    if (on) await this.redis.hset(key, STEER[field], '1');
    else await this.redis.hdel(key, STEER[field]);
  }

  /** Chunks that lie in Redis. */
  async chunks(): Promise<string[]> {
    const names = await this.redis.hkeys(`${this.prefix}:door`);
    return names.filter((name) => !name.startsWith('!'));
  }

  async close(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.stop()));
    await this.queue.close();
    const keys = await this.redis.keys(`${this.prefix}:*`);
    if (keys.length > 0) await this.redis.unlink(...keys);
    closeRedis(this.redis);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #files(): string {
    return join(this.folder, 'files');
  }
}
