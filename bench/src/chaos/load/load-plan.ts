/**
 * From a seed to the calls of the load: what is sent, in what form, and the answer that each item must have. Pure: the
 * same seed gives the same calls, so a run can be repeated.
 */
import { Random } from '../plan/random.js';
import { SINK_NAMES, type SinkName } from './sinks.js';

/** What an item must come to. */
export type Expected = { values: number[] } | { code: string };

export interface PlannedRequest {
  /** Absent: the server gives one. */
  id?: string;
  model: 'held' | 'add' | 'fail-on-mark';
  /** More than one: sent as `items`. */
  expected: Expected[];
  body: Record<string, unknown>;
  /** Ends as expired where it has not ended by then; an older build does not know that. */
  finishTimeoutMs?: number;
  /** Is cancelled behind its acceptance. */
  cancel: boolean;
  /** The sink that is to hear of its end. */
  webhook: SinkName | null;
  /** Sent with an Idempotency-Key in place of an id of its own. */
  idempotencyKey?: string;
}

export interface PlannedCall {
  form: 'single' | 'wait' | 'batch';
  lane: 'interactive' | 'bulk';
  requests: PlannedRequest[];
}

/** The mark at which fail-on-mark fails. */
const MARK = 666;
const WEBHOOK_SHARE = 0.25;

/** The calls of so many requests, one after the other. */
export function* plannedCalls(seed: number, ids: number): Generator<PlannedCall> {
  const random = new Random(seed ^ 0x5eed);
  for (let made = 0; made < ids; ) {
    const form = random.pick(['single', 'single', 'single', 'wait', 'batch'] as const);
    const count = form === 'batch' ? Math.min(random.whole(3, 12), ids - made) : 1;
    const lane = form === 'batch' && random.chance(0.5) ? 'bulk' : 'interactive';
    const requests = Array.from({ length: count }, (_, i) =>
      plannedRequest(random, `c${seed}-${made + i}`, form === 'batch'),
    );
    made += count;
    yield { form, lane, requests };
  }
}

function plannedRequest(random: Random, name: string, inBatch: boolean): PlannedRequest {
  const model = random.pick(['held', 'held', 'held', 'held', 'add', 'fail-on-mark'] as const);
  const many = random.chance(0.15);
  const items = Array.from({ length: many ? random.whole(2, 6) : 1 }, () => plannedItem(random, model));
  const own = inBatch || random.chance(0.85);
  const metadata = {
    priority: random.whole(0, 9),
    ...(random.chance(0.06) ? { timeout_ms: random.whole(200, 8_000) } : {}),
  };
  const inputs = many ? { items: items.map(({ inputs }) => ({ inputs })) } : { inputs: items[0]?.inputs };
  return {
    ...(own ? { id: name } : random.chance(0.5) ? { idempotencyKey: name } : {}),
    model,
    expected: items.map(({ expected }) => expected),
    body: { ...(own ? { request_id: name } : {}), ...inputs, metadata },
    ...(random.chance(0.05) ? { finishTimeoutMs: random.whole(500, 10_000) } : {}),
    cancel: random.chance(0.04),
    webhook: random.chance(WEBHOOK_SHARE) ? random.pick(SINK_NAMES) : null,
  };
}

function plannedItem(
  random: Random,
  model: PlannedRequest['model'],
): { inputs: Record<string, unknown>; expected: Expected } {
  const numbers = (): number[] => Array.from({ length: 4 }, () => random.whole(-1_000, 600));
  const x = numbers();
  if (model === 'add') {
    const b = numbers();
    return {
      inputs: { a: tensor(x), b: tensor(b) },
      expected: { values: x.map((value, i) => value + (b[i] as number)) },
    };
  }
  if (model === 'fail-on-mark' && random.chance(0.2))
    return { inputs: { x: tensor([MARK, ...x.slice(1)]) }, expected: { code: 'inference_failed' } };
  return { inputs: { x: tensor(x) }, expected: { values: x } };
}

function tensor(data: number[]): Record<string, unknown> {
  return { datatype: 'FP32', shape: [1, 4], data };
}
