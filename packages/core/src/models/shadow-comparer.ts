/**
 * Compares the answers of shadow runs with those that were returned. Runs in the worker that ran the copy: it knows of
 * its end without being told, and the work is spread like the runs are. What waits here for its primary lives in
 * memory alone; a worker that dies loses some comparisons and nothing else.
 *
 * Bounded: so many ids wait, so many are compared in a turn, and of a large answer only a part is looked at.
 */
import { decodeFrame, isTerminal, type ModelDeployment, type RawTensor } from '@remuda/schemas';
import { Repeat } from '../fleet/repeat.js';
import { compareOutputs } from '../inference/compare-outputs.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Metrics } from '../observability/metrics.js';
import type { OutcomeExtras } from '../store/outcome.js';
import type { Redis } from '../store/redis.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { primaryIdOf } from './shadow-id.js';
import { addToShadowReport, type ItemComparison } from './shadow-report.js';

const EVERY_MS = 250;
const MOST_WAITING = 500;
/** Of one turn: at most 80 a second. */
const MOST_AT_ONCE = 20;
/** The copy is kept for two minutes. */
const PATIENCE_MS = 90_000;
/** Items of a request, and bytes of an output, that are looked at. */
const MOST_ITEMS = 8;
const MOST_BYTES = 256 * 1024;
/** Differences are reported, not judged; an answer that is not the same is worth showing as an example. */
const EXACT = { abs: 0, rel: 0 };

export interface ShadowComparerOptions {
  redis: Redis;
  store: RequestStore;
  deployments: { of(model: string): ModelDeployment };
  metrics: Pick<Metrics, 'shadowCopies'>;
  clock: Clock;
  onError(error: Error): void;
}

export class ShadowComparer implements Service {
  readonly name = 'shadow comparer';
  readonly #options: ShadowComparerOptions;
  readonly #repeat: Repeat;
  /** When its copy ended, by id of the copy; the oldest first. */
  readonly #waiting = new Map<string, { model: string; endedAt: number }>();

  constructor(options: ShadowComparerOptions) {
    this.#options = options;
    const { clock, onError } = options;
    this.#repeat = new Repeat({ everyMs: EVERY_MS, clock, onError, turn: () => this.turn() });
  }

  async start(): Promise<void> {
    void this.#repeat.start();
  }

  stop(): Promise<void> {
    return this.#repeat.stop();
  }

  /** A copy has ended. */
  offer(model: string, shadowId: string): void {
    if (this.#waiting.size >= MOST_WAITING) this.#count(model, 'not_compared');
    else this.#waiting.set(shadowId, { model, endedAt: this.#options.clock.now() });
  }

  /** Compares what has ended on both sides. */
  async turn(): Promise<void> {
    const { store, redis } = this.#options;
    if (this.#waiting.size === 0 || redis.status !== 'ready') return;
    const ids = [...this.#waiting.keys()].slice(0, MOST_AT_ONCE);
    const records = await store.read([...ids, ...ids.map(primaryIdOf)]);
    for (const [i, id] of ids.entries()) {
      await this.#settle(id, records[i] ?? null, records[ids.length + i] ?? null);
    }
  }

  async #settle(id: string, shadow: StoredRecord | null, primary: StoredRecord | null): Promise<void> {
    const { model, endedAt } = this.#waiting.get(id) as { model: string; endedAt: number };
    this.#waiting.delete(id);
    if (!shadow || !primary) return this.#count(model, 'not_compared');
    if (!isTerminal(primary.status) || !isTerminal(shadow.status)) {
      if (this.#options.clock.now() - endedAt > PATIENCE_MS) return this.#count(model, 'not_compared');
      // Behind those that have not been looked at.
      this.#waiting.set(id, { model, endedAt });
      return;
    }
    await this.#compare(model, primary, shadow);
  }

  async #compare(model: string, primary: StoredRecord, shadow: StoredRecord): Promise<void> {
    const { store, redis, deployments } = this.#options;
    const { revision, shadow: rule } = deployments.of(model);
    const items = Math.min(primary.items, MOST_ITEMS);
    if (!rule) return this.#count(model, 'not_compared');
    const [wanted, got] = await Promise.all(
      [primary, shadow].map((record) => store.readOutcomes({ ...record, items })),
    );
    const found = (wanted ?? []).map((frame, item) =>
      compareItem(primary.requestId, item, frame, got?.[item] ?? null),
    );
    const compared = found.filter((item) => item !== null);
    await addToShadowReport({ redis, keys: store.keys }, model, revision, compared);
    this.#count(model, compared.length > 0 ? 'compared' : 'not_compared');
  }

  #count(model: string, outcome: string): void {
    this.#options.metrics.shadowCopies.inc({ model, outcome });
  }
}

/** null: the primary has no answer to compare with. */
export function compareItem(
  requestId: string,
  item: number,
  primaryFrame: Buffer | null,
  shadowFrame: Buffer | null,
): ItemComparison | null {
  const primary = opened(primaryFrame);
  if (!primary || primary.extras.error) return null;
  const shadow = opened(shadowFrame);
  const common = { requestId, item, primaryRunMs: primary.extras.metrics?.run_ms ?? null };
  if (!shadow || shadow.extras.error) return { ...common, outputs: null, partly: false, shadowRunMs: null };
  const pairs = primary.tensors.map((tensor) => {
    const other = shadow.tensors.find(({ name }) => name === tensor.name);
    return sameShape(tensor, other) ? [head(tensor), head(other as RawTensor)] : [tensor, other];
  });
  const { outputs } = compareOutputs(
    pairs.map(([tensor]) => tensor as RawTensor),
    pairs.flatMap(([, other]) => other ?? []),
    EXACT,
  );
  const partly = pairs.some(([tensor], i) => tensor !== primary.tensors[i]);
  return { ...common, outputs, partly, shadowRunMs: shadow.extras.metrics?.run_ms ?? null };
}

function opened(frame: Buffer | null): { tensors: RawTensor[]; extras: OutcomeExtras } | null {
  if (!frame) return null;
  const { tensors, extras } = decodeFrame(frame);
  return { tensors, extras: extras as OutcomeExtras };
}

function sameShape(a: RawTensor, b: RawTensor | undefined): boolean {
  return b !== undefined && a.datatype === b.datatype && a.shape.join() === b.shape.join();
}

/** The first slices along the last axis of a tensor that is large. */
function head(tensor: RawTensor): RawTensor {
  const { bytes, shape, datatype } = tensor;
  const width = shape.at(-1) ?? 1;
  const slices = shape.slice(0, -1).reduce((product, size) => product * size, 1);
  if (bytes.byteLength <= MOST_BYTES || datatype === 'BYTES' || slices < 2) return tensor;
  const sliceBytes = bytes.byteLength / slices;
  const kept = Math.max(1, Math.floor(MOST_BYTES / sliceBytes));
  return { ...tensor, shape: [kept, width], bytes: bytes.subarray(0, kept * sliceBytes) };
}
