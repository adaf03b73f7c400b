/**
 * The use cases over a real Redis, without any worker: tests play the worker themselves, unit by unit. Each rig has
 * its own key prefix and takes its keys away at the end.
 */
import { randomBytes } from 'node:crypto';
import { lifeLog } from '@remuda/core/observability/events';
import { silentLogger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import type { JobQueues } from '@remuda/core/queue/job-queue';
import type { Partition } from '@remuda/core/queue/partitions';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import type { Submission } from '@remuda/core/requests/submission';
import {
  createRequestUseCases,
  type RequestUseCaseDeps,
  type RequestUseCaseService,
} from '@remuda/core/requests/use-cases';
import { Keys } from '@remuda/core/store/keys';
import type { OutcomeExtras, UnitWrite } from '@remuda/core/store/outcome';
import { closeRedis, connectRedis, type Redis, redisNodes, waitUntilReady } from '@remuda/core/store/redis';
import { RequestStore } from '@remuda/core/store/request-store';
import type { StoredRecord } from '@remuda/core/store/stored-record';
import { encodeFrame, HarnessConfig, type ModelSignature, type RawTensor } from '@remuda/schemas';

export const PARTITION: Partition = { model: 'model', deviceClass: 'cpu', lane: 'interactive' };

export interface Rig {
  cases: RequestUseCaseService;
  /** The store as a runner has it: on a connection that waits. */
  store: RequestStore;
  queues: JobQueues;
  redis: Redis;
  keys: Keys;
  metrics: Metrics;
  /** By which CLIENT KILL finds the connection that hears of ends. */
  subscriberId: string;
  close(): Promise<void>;
}

export type RigOptions = Partial<RequestUseCaseDeps> & {
  url?: string;
  shards?: number;
  /** Of the model, beside its defaults. */
  config?: Partial<HarnessConfig>;
};

export async function setup({ url = testUrl(), shards = 1, config, ...deps }: RigOptions = {}): Promise<Rig> {
  const prefix = `${process.env.REMUDA_TEST_KEY_PREFIX ?? 'remuda-test'}-${randomBytes(6).toString('hex')}`;
  const keys = new Keys({ prefix, shards });
  const onError = (): void => {};
  const connect = (role: 'api' | 'subscriber' | 'runner'): Redis =>
    connectRedis({ url, role, name: `test-${role}`, onError });
  const [redis, subscriber, other] = [connect('api'), connect('subscriber'), connect('runner')];
  await Promise.all([redis, subscriber, other].map((connection) => waitUntilReady(connection, 60_000)));
  const subscriberId = String(await subscriber.call('CLIENT', 'ID'));
  await publishSignature(other, keys, signature(), HarnessConfig.parse({ harness: 'onnx', ...config }));
  const metrics = createMetrics({ processMetrics: false });
  const life = lifeLog(silentLogger);
  const cases = createRequestUseCases({
    redis,
    subscriber,
    keys,
    repository: null,
    logger: silentLogger,
    life,
    metrics,
    ...deps,
  });
  await cases.start();
  return {
    cases,
    store: new RequestStore(other, keys),
    queues: cases.queues,
    redis: other,
    keys,
    metrics,
    subscriberId,
    async close() {
      await cases.stop();
      await dropKeys(other, prefix);
      for (const connection of [redis, subscriber, other]) closeRedis(connection);
    },
  };
}

function testUrl(): string {
  const url = process.env.REMUDA_TEST_REDIS_URL;
  if (!url) throw new Error('REMUDA_TEST_REDIS_URL is not set: run the tests with npm test');
  return url;
}

async function dropKeys(redis: Redis, prefix: string): Promise<void> {
  if (redis.status !== 'ready') return;
  for (const node of redisNodes(redis)) {
    let cursor = '0';
    do {
      const [next, found] = await node.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1_000);
      await Promise.all(found.map((key) => redis.unlink(key)));
      cursor = next;
    } while (cursor !== '0');
  }
}

export function signature(over: Partial<ModelSignature> = {}): ModelSignature {
  const tensor = (name: string) => ({
    name,
    datatype: 'FP32' as const,
    shape: ['n', 'width'],
    batch_axis: 0,
    kind: 'tensor' as const,
  });
  return {
    model: 'model',
    version: '1',
    digest: 'digest-1',
    harness: 'onnx',
    inputs: [tensor('x')],
    outputs: [tensor('y')],
    batchable: true,
    max_batch_size: 8,
    padding: [],
    parameters_schema: null,
    streams: false,
    affinity: ['cpu'],
    ...over,
  };
}

/** A tensor of `rows` rows whose every element is `value`. */
export function tensor(name: string, value: number, rows = 1, width = 4): RawTensor {
  const bytes = new Uint8Array(new Float32Array(rows * width).fill(value).buffer);
  return { name, datatype: 'FP32', shape: [rows, width], bytes };
}

export interface SubmissionOptions {
  id?: string;
  /** One item for each value. */
  values?: number[];
  hasItems?: boolean;
  width?: number;
  model?: string;
  metadata?: Submission['options']['metadata'];
  cache?: Submission['options']['cache'];
  tenant?: string;
}

export function submission({
  id,
  values = [1],
  hasItems = values.length > 1,
  width = 4,
  model = 'model',
  metadata,
  cache,
  tenant = 'default',
}: SubmissionOptions = {}): Submission {
  return {
    model,
    options: { request_id: id, metadata, cache },
    items: values.map((value) => ({ id: null, tensors: [tensor('x', value, 1, width)] })),
    hasItems,
    lane: 'interactive',
    tenant,
    keyId: null,
    traceId: 'a'.repeat(32),
  };
}

export async function stored(store: RequestStore, requestId: string): Promise<StoredRecord | null> {
  const [record] = await store.read([requestId]);
  return record ?? null;
}

/** As if the time until that deadline were over: scripts ask Redis for the time, which no test can move. */
export async function passDeadline(
  { redis, keys }: Pick<Rig, 'redis' | 'keys'>,
  requestId: string,
  which: 'start' | 'finish',
): Promise<void> {
  const past = Date.now() - 1_000;
  await redis.hset(keys.record(requestId), which === 'start' ? 'dl' : 'fdl', past);
  await redis.zadd(keys.due(keys.shardOf(requestId)), past, requestId);
}

/** What a worker knows about an item after taking up its job. */
export function unitOf(record: StoredRecord, item = 0, token = 1): UnitWrite['unit'] {
  const { requestId, nonce, document, acceptedAt } = record;
  const { inline, traceId } = document;
  return { requestId, token, item, rows: 1, nonce, inline, traceId, acceptedAt };
}

/** An outcome as a runner writes it. */
export function outcome(
  unit: UnitWrite['unit'],
  kind: UnitWrite['kind'],
  tensors: RawTensor[] = [],
  extras: OutcomeExtras = {},
): UnitWrite {
  const error = {
    ok: undefined,
    error: { code: 'inference_failed' as const, message: 'no', retryable: false },
    expired: { code: 'deadline_exceeded' as const, message: 'late', retryable: true },
  }[kind];
  return { unit, kind, frame: encodeFrame('outputs', tensors, { ...(error && { error }), ...extras }) };
}

/** Claims and answers every item of a request, as a worker would. */
export async function answer(
  store: RequestStore,
  requestId: string,
  kinds: UnitWrite['kind'][],
): Promise<void> {
  const record = (await stored(store, requestId)) as StoredRecord;
  const units = kinds.map((_, item) => unitOf(record, item));
  await store.claimAndFetch(units, 'worker');
  const results = kinds.map((kind, item) =>
    outcome(unitOf(record, item), kind, kind === 'ok' ? [tensor('y', item)] : []),
  );
  await store.writeOutcomes(results);
}

/** Waits until something has become true; the deadline only bounds a failing test. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  ms = 120_000,
): Promise<void> {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
