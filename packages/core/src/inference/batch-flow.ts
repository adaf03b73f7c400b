/**
 * One batch on its way through a runner: claimed, run (item-run.ts), written. Batches are independent flows: while one
 * runs natively, the next is fetched, decoded and assembled. Every unit gets its own outcome; a bad item fails alone,
 * and a failed run is reported, never judged: whose fault it was is found by the worker (run-batch.ts), which may run
 * the halves again.
 */
import { decodeFrame } from '@remuda/schemas';
import { finishDeadlineError, startDeadlineError } from '../deadlines/deadline-errors.js';
import { itemError } from '../errors.js';
import type { Claim } from '../store/outcome.js';
import { type ItemRun, type ItemRunContext, newItemRun, runItems } from './item-run.js';
import type { LoadedModel } from './loaded-model.js';
import type { BatchUnit, ToRunner, UnitOutcome } from './runner-protocol.js';
import type { RunnerStore } from './runner-store.js';
import { writeOutcomes } from './write-outcomes.js';

export type RunMessage = Extract<ToRunner, { type: 'run' }>;

export interface FlowContext extends ItemRunContext {
  store: RunnerStore;
  device: string;
}

/** A unit and what has become of it so far: one of the optional fields says how it ended, if it has. */
export interface Entry extends ItemRun {
  unit: BatchUnit;
  claimedAt: number;
  dropped?: Extract<UnitOutcome, { kind: 'dropped' }>['reason'];
}

/** Runs a batch from claim to written outcomes and reports it. Rejects only when the store does. */
export async function flowBatch(
  message: RunMessage,
  model: LoadedModel,
  context: FlowContext,
): Promise<void> {
  const started = performance.now();
  const claims = await context.store.claimAndFetch(message.units, message.workerId, message.begun);
  try {
    await flowClaimed(message, claims, performance.now() - started, model, context);
  } finally {
    for (const claim of claims)
      if (claim.verdict === 'run' && claim.memory) context.buffers.release(claim.memory);
  }
}

async function flowClaimed(
  message: RunMessage,
  claims: readonly Claim[],
  fetchMs: number,
  model: LoadedModel,
  context: FlowContext,
): Promise<void> {
  const entries = message.units.map((unit, i) => decode(unit, claims[i], message.begun));
  const claimed = entries.filter((entry) => !entry.failed && !entry.dropped);
  const { expectedRunMs } = message;
  const runMs = await runItems(claimed, message.batchId, model, { ...context, expectedRunMs });
  const beforeWrite = performance.now();
  const outcomes = await writeOutcomes(entries, message, model, context);
  context.send({
    type: 'batch_done',
    batchId: message.batchId,
    outcomes,
    fetchMs,
    runMs,
    writeMs: performance.now() - beforeWrite,
  });
}

function decode(unit: BatchUnit, claim: Claim | undefined, begun = false): Entry {
  const entry: Entry = { ...newItemRun([], {}), unit, claimedAt: Date.now(), begun };
  if (claim?.verdict === 'run') {
    entry.limits = claim.limits;
    const { tensors, extras } = decodeFrame(claim.payload);
    entry.inputs = tensors;
    entry.parameters = (extras.parameters as Record<string, unknown> | undefined) ?? {};
  } else if (claim?.verdict === 'expired_start' || claim?.verdict === 'expired_finish') {
    entry.expired = true;
    entry.failed =
      claim.verdict === 'expired_finish'
        ? finishDeadlineError()
        : startDeadlineError('before its run could start');
  } else if (claim === undefined || claim.verdict === 'payload_missing') {
    entry.failed = itemError('payload_missing', 'the stored input of the item is gone');
  } else entry.dropped = claim.verdict;
  return entry;
}
