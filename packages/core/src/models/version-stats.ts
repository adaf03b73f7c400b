/**
 * Counts of each version while its model's traffic is split: how items ended and how long runs took. Workers count in
 * memory, for almost nothing, and add to one hash in Redis once a second. The hash is that of one revision of the
 * desired state: whatever is changed about a model, the comparison begins anew.
 *
 * Read by the steward, to take a bad canary back (canary-rollback.ts), and by the admin API (readSplitStats).
 */
import type { ErrorCode, ModelDeployment } from '@remuda/schemas';
import { Repeat } from '../fleet/repeat.js';
import type { UnitEnd } from '../inference/run-batch.js';
import type { BatchUnit } from '../inference/runner-protocol.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import type { SideCounts } from './canary-judgement.js';
import { bucketOf } from './run-time-histogram.js';
import { isShadowId } from './shadow-id.js';

const FLUSH_EVERY_MS = 1_000;
/** After the last count; a split without traffic for so long begins anew. */
const KEPT_S = 3 * 24 * 3600;

/** Errors that lie in what was sent. */
const INPUT_ERRORS: ReadonlySet<ErrorCode> = new Set(['item_rejected', 'invalid_input', 'invalid_parameter']);
/** Errors that lie in neither input nor version. */
const NOBODYS_ERRORS: ReadonlySet<ErrorCode> = new Set([
  'deadline_exceeded',
  'cancelled',
  'payload_missing',
  'worker_lost',
]);

type Units = readonly Pick<BatchUnit, 'requestId'>[];

/** What the worker's batches tell. A model whose traffic is not split costs one look-up. */
export interface VersionObserver {
  /** Native runs of a batch. */
  ran(model: string, version: string, units: Units, runs: readonly { seconds: number }[]): void;
  /** What has become of its items at last. */
  ended(model: string, version: string, units: Units, ends: readonly UnitEnd[]): void;
  /** It has killed or hung its runner. */
  killed(model: string, version: string): void;
}

export interface VersionStatsOptions {
  redis: Redis;
  keys: Keys;
  /** The desired state as this process knows it. */
  deployments: { of(model: string): ModelDeployment };
  /** A copy for a shadow version has ended. */
  onShadowEnd?(model: string, shadowId: string): void;
  clock: Clock;
  onError(error: Error): void;
}

export class VersionStats implements Service, VersionObserver {
  readonly name = 'version stats';
  readonly #options: VersionStatsOptions;
  readonly #repeat: Repeat;
  /** Counts by field, by key. */
  #counts = new Map<string, Map<string, number>>();

  constructor(options: VersionStatsOptions) {
    this.#options = options;
    const { clock, onError } = options;
    this.#repeat = new Repeat({ everyMs: FLUSH_EVERY_MS, clock, onError, turn: () => this.flush() });
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  async stop(): Promise<void> {
    await this.#repeat.stop();
    await this.flush().catch(this.#options.onError);
  }

  ran(model: string, version: string, units: Units, runs: readonly { seconds: number }[]): void {
    const counts = this.#countsOf(model);
    // A batch of copies alone says nothing about the traffic; in a mixed one they take their part of its time.
    if (!counts || units.every(({ requestId }) => isShadowId(requestId))) return;
    for (const { seconds } of runs) add(counts, `${version}:s:${bucketOf(seconds)}`);
  }

  ended(model: string, version: string, units: Units, ends: readonly UnitEnd[]): void {
    const counts = this.#countsOf(model);
    ends.forEach((end, i) => {
      if (end.kind !== 'written') return;
      const { requestId } = units[i] as Units[number];
      if (isShadowId(requestId)) {
        if (end.ended) this.#options.onShadowEnd?.(model, requestId);
        return;
      }
      if (!counts) return;
      const outcome = end.ok ? 'ok' : classOf(end.code as ErrorCode);
      if (outcome) add(counts, `${version}:${outcome}`);
    });
  }

  killed(model: string, version: string): void {
    const counts = this.#countsOf(model);
    if (counts) add(counts, `${version}:killed`);
  }

  /** One write with all that has changed. What Redis refuses is not counted: these are statistics. */
  async flush(): Promise<void> {
    const { redis } = this.#options;
    const counts = this.#counts;
    if (counts.size === 0 || redis.status !== 'ready') return;
    this.#counts = new Map();
    await Promise.all(
      [...counts].flatMap(([key, fields]) => [
        ...[...fields].map(([field, by]) => redis.hincrby(key, field, by)),
        redis.expire(key, KEPT_S),
      ]),
    );
  }

  #countsOf(model: string): Map<string, number> | undefined {
    const { deployments, keys } = this.#options;
    const { split, revision } = deployments.of(model);
    if (!split) return undefined;
    const key = keys.versionStats(model, revision);
    const known = this.#counts.get(key);
    if (known) return known;
    const counts = new Map<string, number>();
    this.#counts.set(key, counts);
    return counts;
  }
}

function add(counts: Map<string, number>, field: string): void {
  counts.set(field, (counts.get(field) ?? 0) + 1);
}

function classOf(code: ErrorCode): 'model_error' | 'input_error' | undefined {
  if (INPUT_ERRORS.has(code)) return 'input_error';
  return NOBODYS_ERRORS.has(code) ? undefined : 'model_error';
}

/** What was counted of each version since a revision. */
export async function readVersionStats(
  { redis, keys }: { redis: Redis; keys: Keys },
  model: string,
  revision: number,
): Promise<Map<string, SideCounts>> {
  const sides = new Map<string, SideCounts & { runs: Map<number, number> }>();
  const fields = await redis.hgetall(keys.versionStats(model, revision));
  for (const [field, text] of Object.entries(fields)) {
    const [version = '', what, bucket] = field.split(':');
    const side = sides.get(version) ?? noCounts();
    sides.set(version, side);
    const count = Number(text);
    if (what === 'ok') side.ok = count;
    else if (what === 'model_error') side.modelErrors = count;
    else if (what === 'input_error') side.inputErrors = count;
    else if (what === 'killed') side.killed = count;
    else if (what === 's') side.runs.set(Number(bucket), count);
  }
  return sides;
}

export function noCounts(): SideCounts & { runs: Map<number, number> } {
  return { ok: 0, modelErrors: 0, inputErrors: 0, killed: 0, runs: new Map() };
}
