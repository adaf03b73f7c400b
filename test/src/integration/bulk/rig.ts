/** Bulk jobs with a real Redis, real files and real coordinator processes, and a door that answers at once. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createBulkService } from '@remuda/core/bulk/bulk-service';
import { needsCoordinator } from '@remuda/core/bulk/bulk-sweeper';
import type { BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import { Coordinator } from '@remuda/core/bulk/coordinator/coordinator';
import { realTools } from '@remuda/core/bulk/coordinator/real-tools';
import { redisDoor, STEER } from '@remuda/core/bulk/coordinator/redis-door.fixture';
import { createBulkFiles } from '@remuda/core/bulk/files/bulk-files';
import { BulkJobStore } from '@remuda/core/bulk/job-store';
import { type Clock, systemClock } from '@remuda/core/lifecycle/clock';
import { lifeLog } from '@remuda/core/observability/events';
import { createLogger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import { BulkConsumer, BulkQueue } from '@remuda/core/queue/bulk-queue';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import type { DeliveryStore } from '@remuda/core/webhooks/delivery-store';
import { webhookParts } from '@remuda/core/webhooks/webhook-parts';
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
  /** The same, whose jobs come to no coordinator. */
  readonly unheard: BulkUseCases;
  readonly metrics: Metrics = createMetrics({ processMetrics: false });
  readonly log: Record<string, unknown>[] = [];
  readonly hosts: BulkHost[] = [];
  /** Jobs that are coordinated in this process now. */
  readonly living = new Set<string>();
  deliveries: DeliveryStore | undefined;
  #laterMs = 0;
  readonly #closing: (() => Promise<void>)[] = [];

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
    const service = (queue: Pick<BulkQueue, 'add'>): BulkUseCases =>
      createBulkService({
        ...{ store: this.store, queue, files, filesFolder: this.#files() },
        resolve: ({ model, version }) => resolve(model, version),
      });
    this.bulk = service(this.queue);
    this.unheard = service({ add: async () => {} });
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

  /** Takes jobs and coordinates them in this process: for what needs no death. */
  here(): void {
    const clock: Clock = { ...systemClock, now: () => Date.now() + this.#laterMs };
    const onError = (): void => {};
    const subscriber = connectRedis({ url: this.url, role: 'subscriber', name: 'bulk-here', onError });
    const logger = createLogger({ name: 'here', level: 'silent' });
    const shared = { redis: this.redis, keys: this.keys, clock, onError };
    const { outbox, queue, deliveries } = webhookParts({ ...shared, life: lifeLog(logger) });
    this.deliveries = deliveries;
    const tools = realTools({
      ...{ files: this.bulk.files, signal: new AbortController().signal, allowed: null, references: {} },
    });
    const run = async (jobId: string): Promise<'done' | 'again'> => {
      this.living.add(jobId);
      const end = await new Coordinator({
        ...{ jobId, store: this.store, subscriber, outbox, clock, logger, tools },
        ...{ door: redisDoor(this.redis, `${this.prefix}:door`), patienceMs: 500, tickMs: 25 },
        report: () => {},
      }).run();
      this.living.delete(jobId);
      return end === 'left' ? 'again' : 'done';
    };
    const handle = async (id: string) => ((await this.store.isOpen(id)) ? run(id) : 'done');
    const consumer = new BulkConsumer({
      ...{ ...shared, keyPrefix: this.prefix, concurrency: 4, lockMs: 10_000, handle },
      onOut: (id) => void this.#lookAgain(id),
    });
    consumer.start();
    this.#closing.push(async () => {
      await consumer.close(true);
      await queue.close();
      closeRedis(subscriber);
    });
  }

  /** For who coordinates here. */
  hoursLater(hours: number): void {
    this.#laterMs = hours * 3_600_000;
  }

  async #lookAgain(id: string): Promise<void> {
    const job = await this.store.read(id);
    if (job && needsCoordinator(job) && (await this.store.isOpen(id))) await this.queue.add(id);
  }

  file(name: string, text?: string): string {
    const path = join(this.folder, name);
    if (text !== undefined) writeFileSync(path, text);
    return path;
  }

  text(name: string): string {
    return readFileSync(this.file(name), 'utf8');
  }

  has(name: string): boolean {
    return existsSync(this.file(name));
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
    for (const close of this.#closing) await close();
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
