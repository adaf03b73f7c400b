/** The last step of a batch in a runner: outcomes as frames, written in one call, and what the store said of each. */
import { encodeFrame, type ItemMetrics } from '@remuda/schemas';
import type { OutcomeExtras, UnitWrite, WriteVerdict } from '../store/outcome.js';
import type { Entry, FlowContext, RunMessage } from './batch-flow.js';
import type { LoadedModel } from './loaded-model.js';
import type { UnitOutcome } from './runner-protocol.js';

/** Writes what has ended well or badly; units of failed runs and dropped ones are reported alone. */
export async function writeOutcomes(
  entries: readonly Entry[],
  message: RunMessage,
  model: LoadedModel,
  context: FlowContext,
): Promise<UnitOutcome[]> {
  const written = entries.filter((entry) => entry.answer || entry.failed);
  const writes = written.map((entry) => toWrite(entry, metricsOf(entry, message, model, context)));
  const verdicts = writes.length > 0 ? await context.store.writeOutcomes(writes) : [];
  const verdictOf = new Map(written.map((entry, i) => [entry, verdicts[i]]));
  return entries.map((entry) => outcomeOf(entry, verdictOf.get(entry)));
}

function metricsOf(
  { unit, claimedAt, runMs, batchRows }: Entry,
  { batchId, workerId }: RunMessage,
  { provider }: LoadedModel,
  { device }: FlowContext,
): ItemMetrics {
  return {
    queue_ms: Math.max(0, claimedAt - unit.acceptedAt),
    run_ms: Math.round(runMs * 1000) / 1000,
    total_ms: Math.max(0, Date.now() - unit.acceptedAt),
    batch_rows: batchRows,
    batch_id: batchId,
    worker_id: workerId,
    device,
    provider,
  };
}

function toWrite({ unit, answer, failed, expired }: Entry, metrics: ItemMetrics): UnitWrite {
  const extras: OutcomeExtras = { metrics };
  if (failed) extras.error = failed;
  else if (answer?.extra) extras.model_extra = answer.extra;
  const tensors = failed ? [] : (answer?.outputs ?? []);
  const frame = encodeFrame('outputs', tensors, extras as Record<string, unknown>);
  if (expired) return { unit, kind: 'expired', frame };
  return failed ? { unit, kind: 'error', error: failed, frame } : { unit, kind: 'ok', frame };
}

function outcomeOf(entry: Entry, verdict: WriteVerdict | undefined): UnitOutcome {
  if (entry.dropped) return { kind: 'dropped', reason: entry.dropped };
  if (entry.runFailed && !verdict) return { kind: 'run_failed', ...entry.runFailed };
  return outcomeOfWrite(verdict, entry.failed?.code);
}

/** What the store said of a write, as an outcome. @param code of its error; absent: it has an answer */
export function outcomeOfWrite(
  write: WriteVerdict | undefined,
  code?: string,
): Extract<UnitOutcome, { kind: 'written' | 'dropped' }> {
  const { verdict = 'record_missing', ended = null } = write ?? {};
  if (verdict === 'written')
    return { kind: 'written', ok: code === undefined, ...(code ? { code } : {}), ended };
  if (verdict === 'too_late') return { kind: 'written', ok: false, code: 'deadline_exceeded', ended };
  return { kind: 'dropped', reason: verdict };
}
