/**
 * The verdict: each id of the ledger against what the witness saw and what the API answers now. Exactly one end, the
 * right answer, nothing of a worker that had lost the request, a webhook where one was asked for.
 */
import type { InferenceResult } from '@remuda/schemas';
import type { LedgerEntry } from './load/ledger-file.js';
import type { Expected } from './load/load-plan.js';
import { showsFenced, type WitnessedRequest } from './watch/witness.js';

export interface Judged {
  entry: LedgerEntry;
  terminal: boolean;
  lost?: string;
  doubled?: string;
  /** Ended as failed for no fault of its own: workers or runners died with it too often. */
  gaveUp: boolean;
  webhookMissing: boolean;
}

export interface Evidence {
  witnessed: WitnessedRequest | undefined;
  /** What GET /v1/requests/{id}/result answers; null: it does not know the request, or it has not ended. */
  result: InferenceResult | null;
  /** Webhooks that were taken for it. */
  delivered: number;
}

/** Codes of a request that was given up because processes died under it. */
const GIVEN_UP = new Set(['runner_crashed', 'worker_lost', 'run_timeout', 'internal', 'model_load_failed']);
const ENDED = new Set(['succeeded', 'partial', 'failed', 'cancelled', 'expired']);

export function judge(entry: LedgerEntry, { witnessed, result, delivered }: Evidence): Judged {
  const terminal = result !== null && ENDED.has(result.status);
  const given = result === null ? null : faultOf(entry, result);
  return {
    entry,
    terminal,
    ...lostOf(terminal, given),
    ...doubledOf(witnessed, result),
    gaveUp: given === 'gave_up',
    // 410 is the sink's own word that it wants nothing more.
    webhookMissing: entry.webhook !== undefined && entry.webhook !== 'gone' && delivered === 0,
  };
}

function lostOf(terminal: boolean, given: string | null): { lost?: string } {
  if (!terminal) return { lost: 'it has no end' };
  return given === null || given === 'gave_up' ? {} : { lost: given };
}

function doubledOf(
  witnessed: WitnessedRequest | undefined,
  result: InferenceResult | null,
): { doubled?: string } {
  if (!witnessed) return {};
  if (witnessed.ends.length > 1) return { doubled: `it ended as ${witnessed.ends.join(', then ')}` };
  if (witnessed.rewritten > 0) return { doubled: 'an outcome was written over another or behind the end' };
  const fenced = showsFenced(witnessed);
  if (fenced)
    return { doubled: `it shows the result of ${fenced.writer}, which had lost it to ${fenced.holder}` };
  if (result && witnessed.ends[0] !== result.status)
    return { doubled: `it ended as ${witnessed.ends[0]} and is told as ${result.status}` };
  return {};
}

/** null: as it should be. gave_up: failed for no fault of its own. Else what is wrong. */
function faultOf(entry: LedgerEntry, result: InferenceResult): string | null {
  if (result.status === 'cancelled') return entry.cancel ? null : 'nobody has cancelled it';
  const items = result.items ?? [result];
  if (items.length !== entry.expected.length) return `it has ${items.length} items`;
  const faults = items.map((item, i) => itemFault(item, entry.expected[i] as Expected, entry));
  return faults.find((fault) => fault !== null && fault !== 'gave_up') ?? faults.find(Boolean) ?? null;
}

type Item = Pick<InferenceResult, 'status' | 'outputs' | 'error'>;

function itemFault(item: Item, expected: Expected, entry: LedgerEntry): string | null {
  if (item.status === 'expired') return entry.deadline ? null : 'it expired without a deadline';
  if (item.status === 'cancelled') return entry.cancel ? null : 'nobody has cancelled it';
  const code = item.error?.code;
  if ('code' in expected && code === expected.code) return null;
  if (code !== undefined && GIVEN_UP.has(code)) return 'gave_up';
  if ('code' in expected) return `it should fail with ${expected.code} and is ${item.status} ${code ?? ''}`;
  if (code !== undefined) return `it failed with ${code}: ${item.error?.message}`;
  const values = Object.values(item.outputs ?? {})[0]?.data;
  return JSON.stringify(values) === JSON.stringify(expected.values)
    ? null
    : `its answer is ${JSON.stringify(values)} and should be ${JSON.stringify(expected.values)}`;
}
