/**
 * Requests as the build before deadlines to finish, webhooks and API keys left them in Redis (commit 1c57d2d): record,
 * input and job, field by field as that build wrote them. They were accepted, so they must end like any other; this is
 * what a fleet meets that is upgraded with work on its queues. The shape is a recording: it does not follow the code.
 */
import { encodeFrame } from '@remuda/schemas';
import { Queue } from 'bullmq';
import { KEY_PREFIX } from '../fleet/chaos-fleet.js';
import type { FaultName } from '../plan/fault-kinds.js';
import type { Fault } from '../plan/plan.js';
import { Random } from '../plan/random.js';
import type { Site, Strike } from './site.js';

const COUNT = 5;
const TTL_MS = 7 * 24 * 3600 * 1000;
const TAG = `${KEY_PREFIX}:{r0}`;
const QUEUE = '{held/cpu/interactive}';
const JOB_OPTIONS = {
  attempts: 5,
  backoff: { type: 'remuda' },
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 1,
} as const;

/** Some requests of the model `held`, whose digest and compatibility key are those of the given request of it. */
const layOldJobs: Strike = async (fault, site) => {
  const { redis } = site.fleet.redis;
  const pattern = await patternOf(site);
  const connection = redis.duplicate();
  const queue = new Queue(QUEUE, { connection, prefix: `${KEY_PREFIX}:queue`, skipVersionCheck: true });
  try {
    for (let i = 0; i < COUNT; i++) await layOne(fault, i, pattern, site, queue);
  } finally {
    await queue.close();
    connection.disconnect();
  }
};

interface Pattern {
  version: string;
  digest: string;
  group: string;
}

async function patternOf({ fleet }: Site): Promise<Pattern> {
  const entry = await firstOfHeld(fleet.redis.redis);
  const document = JSON.parse(entry) as {
    version: string;
    digest: string;
    units: [number, number, string][];
  };
  return { version: document.version, digest: document.digest, group: document.units[0]?.[2] ?? '' };
}

/** The document of any request of `held`: the load sends them from its first moment on. */
async function firstOfHeld(redis: Site['fleet']['redis']['redis']): Promise<string> {
  const ids = await redis.zrange(`${TAG}:all`, '0', '199');
  for (const id of ids) {
    const document = await redis.hget(`${TAG}:q:${id}`, 'doc');
    if (document?.includes('"model":"held"')) return document;
  }
  throw new Error('no request of the model held has been accepted yet');
}

async function layOne(
  fault: Fault,
  index: number,
  pattern: Pattern,
  site: Site,
  queue: Queue,
): Promise<void> {
  const id = `old-${fault.number}-${index}`;
  const random = new Random(fault.number * COUNT + index);
  const values = Array.from({ length: 4 }, () => random.whole(-1_000, 1_000));
  const now = Date.now();
  const { version, digest, group } = pattern;
  const units = [[1, 1, group]];
  const facts = { requestId: id, nonce: `n${id}`, version, traceId: traceOf(fault, index) };
  const { redis } = site.fleet.redis;
  await redis
    .multi()
    .hset(`${TAG}:q:${id}`, {
      ...{
        s: 'queued',
        nonce: facts.nonce,
        acc: facts.nonce,
        fp: `fp-${id}`,
        at: now,
        n: 1,
        ttl: TTL_MS,
        dl: 0,
      },
      doc: JSON.stringify(oldDocument(facts, digest, units)),
      in: inputFrame(values),
    })
    .zadd(`${TAG}:open`, now, id)
    .zadd(`${TAG}:all`, now, id)
    .exec();
  const ticket = { ...facts, acceptedAt: now, deadline: 0, priority: 5, inline: true, units, tokenBase: 0 };
  await queue.add('request', ticket, { ...JOB_OPTIONS, jobId: id, priority: 6 });
  site.ledger.accept({
    ...{ id, model: 'held', expected: [{ values }], items: false, deadline: false, cancel: false },
  });
}

function oldDocument(
  { version, traceId }: { version: string; traceId: string },
  digest: string,
  units: unknown,
): Record<string, unknown> {
  return {
    ...{ model: 'held', version, digest, tenant: 'default', rows: 1, hasItems: false, units },
    ...{ metadata: { priority: 5 }, traceId, inline: true, notices: [] },
    route: { device_class: 'cpu', lane: 'interactive', reasons: ['the only class'] },
  };
}

function inputFrame(values: number[]): Buffer {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  return encodeFrame('inputs', [{ name: 'x', datatype: 'FP32', shape: [1, 4], bytes }]);
}

function traceOf({ number }: Fault, index: number): string {
  return `${number.toString(16).padStart(16, '0')}${index.toString(16).padStart(16, 'a')}`;
}

export const JOB_FAULTS: Partial<Record<FaultName, Strike>> = { old_jobs: layOldJobs };
