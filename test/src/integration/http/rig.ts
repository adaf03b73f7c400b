/**
 * The API as a whole over a real Redis, without any worker: signatures are published as a worker would, so that
 * requests are accepted and stay queued. Each rig has its own key prefix and takes its keys away at the end.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { createLogger, type LogDestination } from '@remuda/core/observability/logger';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import { RequestStore } from '@remuda/core/store/request-store';
import { deleteKeysContaining } from '@remuda/infra/redis-launcher';
import { ApiService, type ApiServiceOptions, apiConfig } from '@remuda/producer-api';
import { HarnessConfig, type ModelSignature, type Problem, type SignatureTensor } from '@remuda/schemas';

export interface Rig {
  url: string;
  api: ApiService;
  redis: Redis;
  keys: Keys;
  store: RequestStore;
  /** Lines of the API's log, parsed. */
  log: Record<string, unknown>[];
  /** REMUDA_FILES. */
  files: string;
  call(method: string, path: string, init?: CallInit): Promise<Answer>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

export interface CallInit {
  body?: string | Uint8Array | FormData;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  bytes: Buffer;
  /** Parsed where it is JSON. */
  body: Problem & Record<string, unknown>;
}

export interface RigOptions {
  url?: string;
  env?: Record<string, string>;
  clock?: Clock;
  makeBulk?: ApiServiceOptions['makeBulk'];
}

export async function setup({ url = testUrl(), env = {}, clock, makeBulk }: RigOptions = {}): Promise<Rig> {
  const prefix = `${process.env.REMUDA_TEST_KEY_PREFIX ?? 'remuda-test'}-${randomBytes(6).toString('hex')}`;
  const keys = new Keys({ prefix, shards: 1 });
  const redis = connectRedis({ url, role: 'runner', name: 'test-http', onError() {} });
  await waitUntilReady(redis, 60_000);
  for (const signature of SIGNATURES) {
    await publishSignature(redis, keys, signature, HarnessConfig.parse({ harness: signature.harness }));
  }
  const models = await mkdtemp(join(tmpdir(), 'remuda-http-'));
  const files = `${models}-files`;
  const config = apiConfig({
    REDIS_URL: url,
    REMUDA_KEY_PREFIX: prefix,
    REMUDA_MODELS: models,
    REMUDA_API_PORT: '0',
    REMUDA_FILES: files,
    ...env,
  });
  const log: Rig['log'] = [];
  const destination: LogDestination = { write: (line) => void log.push(JSON.parse(line)) };
  const logger = createLogger({ name: 'api', level: 'info', destination });
  const api = new ApiService({ config, logger, clock, ...(makeBulk ? { makeBulk } : {}) });
  await api.start();
  const call: Rig['call'] = (method, path, init) => callApi(`${api.url}${path}`, method, init);
  return {
    url: api.url,
    api,
    redis,
    keys,
    store: new RequestStore(redis, keys),
    log,
    files,
    call,
    post: (path, body, headers = {}) =>
      call('POST', path, {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    async close() {
      await api.stop();
      closeRedis(redis);
      await deleteKeysContaining(url, prefix).catch(() => {});
      await rm(models, { recursive: true, force: true });
      await rm(files, { recursive: true, force: true });
    },
  };
}

async function callApi(url: string, method: string, { body, headers = {} }: CallInit = {}): Promise<Answer> {
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
  const bytes = Buffer.from(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.includes('json') && bytes.length > 0;
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    body: isJson ? JSON.parse(bytes.toString('utf8')) : {},
  };
}

function testUrl(): string {
  const url = process.env.REMUDA_TEST_REDIS_URL;
  if (!url) throw new Error('REMUDA_TEST_REDIS_URL is not set: run the tests with npm test');
  return url;
}

export function signature(
  model: string,
  inputs: SignatureTensor[],
  more: Partial<ModelSignature> = {},
): ModelSignature {
  return {
    model,
    version: '1',
    digest: `digest-of-${model}`,
    harness: 'onnx',
    inputs,
    outputs: [tensor('y', 'FP32', ['N', 3])],
    batchable: true,
    max_batch_size: 8,
    padding: [],
    parameters_schema: null,
    streams: false,
    affinity: ['cpu'],
    ...more,
  };
}

export function tensor(
  name: string,
  datatype: SignatureTensor['datatype'],
  shape: (number | string)[],
): SignatureTensor {
  const axis = shape.indexOf('N');
  return { name, datatype, shape, batch_axis: axis < 0 ? null : axis, kind: 'tensor' };
}

const SIGNATURES: ModelSignature[] = [
  signature('rows', [tensor('x', 'FP32', ['N', 3])]),
  signature('pair', [tensor('ids', 'INT64', ['N', 'T']), tensor('mask', 'INT64', ['N', 'T'])]),
  signature('text', [tensor('words', 'BYTES', ['N'])]),
  signature('picture', [{ ...tensor('image', 'BYTES', ['N']), kind: 'image' }]),
  signature('tuned', [tensor('x', 'FP32', ['N', 3])], {
    parameters_schema: {
      type: 'object',
      properties: { top_k: { type: 'integer', minimum: 1, maximum: 5, default: 2 } },
      required: ['top_k'],
      additionalProperties: false,
    },
  }),
];
