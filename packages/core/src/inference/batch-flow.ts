/**
 * One batch on its way through a runner, as named steps. Batches are independent flows: while one runs natively, the
 * next is fetched, decoded and assembled. Every unit gets its own outcome; a bad item fails alone, and a failed run is
 * reported, never judged: whose fault it was is found by the worker (run-batch.ts), which may run the halves again.
 */
import { decodeFrame, type ItemError, type RawTensor } from '@remuda/schemas';
import { compatibilityKey } from '../batching/compatibility.js';
import { itemError, toItemError } from '../errors.js';
import type { Claim } from '../store/outcome.js';
import { assemble, type Piece, planRuns, rowsOf } from './batch-assembly.js';
import { joinPieces, restoreLengths, splitOutputs } from './batch-split.js';
import type { BufferPool } from './buffer-pool.js';
import type { LoadedModel } from './loaded-model.js';
import type { BatchUnit, FromRunner, ToRunner, UnitOutcome } from './runner-protocol.js';
import type { RunnerStore } from './runner-store.js';
import { writeOutcomes } from './write-outcomes.js';

export type RunMessage = Extract<ToRunner, { type: 'run' }>;

export interface FlowContext {
  store: RunnerStore;
  buffers: BufferPool;
  device: string;
  send(message: FromRunner): void;
}

/** A unit and what has become of it so far: one of the optional fields says how it ended, if it has. */
export interface Entry {
  unit: BatchUnit;
  claimedAt: number;
  /** The model's own inputs, after preprocessing. */
  inputs: RawTensor[];
  parameters: Record<string, unknown>;
  note: unknown;
  rows: number;
  /** Outputs of each of its pieces, with the piece's first row. */
  pieces: { from: number; outputs: RawTensor[] }[];
  runMs: number;
  /** Rows of the largest run that held rows of it. */
  batchRows: number;
  answer?: { outputs: RawTensor[]; extra?: Record<string, unknown> };
  failed?: ItemError;
  expired?: boolean;
  dropped?: Extract<UnitOutcome, { kind: 'dropped' }>['reason'];
  runFailed?: { alone: boolean; error: ItemError };
}

/** True while nothing has ended the entry. */
function isOpen(entry: Entry): boolean {
  return !entry.failed && !entry.dropped && !entry.runFailed;
}

/** Runs a batch from claim to written outcomes and reports it. Rejects only when the store does. */
export async function flowBatch(
  message: RunMessage,
  model: LoadedModel,
  context: FlowContext,
): Promise<void> {
  const started = performance.now();
  const claims = await context.store.claimAndFetch(message.units, message.workerId);
  const fetched = performance.now();
  const entries = message.units.map((unit, i) => decode(unit, claims[i]));
  await preprocess(entries.filter(isOpen), model);
  const runMs = await runGroups(groups(entries.filter(isOpen), model), message.batchId, model, context);
  await postprocess(entries.filter(isOpen), model);
  const beforeWrite = performance.now();
  const outcomes = await writeOutcomes(entries, message, model, context);
  context.send({
    type: 'batch_done',
    batchId: message.batchId,
    outcomes,
    fetchMs: fetched - started,
    runMs,
    writeMs: performance.now() - beforeWrite,
  });
}

function decode(unit: BatchUnit, claim: Claim | undefined): Entry {
  const entry: Entry = {
    unit,
    claimedAt: Date.now(),
    inputs: [],
    parameters: {},
    note: undefined,
    rows: 0,
    pieces: [],
    runMs: 0,
    batchRows: 0,
  };
  if (claim?.verdict === 'run') {
    const { tensors, extras } = decodeFrame(claim.payload);
    entry.inputs = tensors;
    entry.parameters = (extras.parameters as Record<string, unknown> | undefined) ?? {};
  } else if (claim?.verdict === 'expired') {
    entry.expired = true;
    entry.failed = itemError('deadline_exceeded', 'the deadline passed before the run could start');
  } else if (claim === undefined || claim.verdict === 'payload_missing') {
    entry.failed = itemError('payload_missing', 'the stored input of the item is gone');
  } else entry.dropped = claim.verdict;
  return entry;
}

async function preprocess(entries: readonly Entry[], { hooks, batch }: LoadedModel): Promise<void> {
  const prepare = async (entry: Entry): Promise<void> => {
    try {
      const prepared = await hooks.preprocess?.(entry.inputs, entry.parameters);
      if (prepared && 'error' in prepared) {
        entry.failed = prepared.error;
        return;
      }
      if (prepared) {
        entry.inputs = prepared.inputs;
        entry.note = prepared.note;
      }
      entry.rows = rowsOf(entry.inputs, batch);
    } catch (error) {
      entry.failed = toItemError(error, 'item_rejected');
    }
  };
  await Promise.all(entries.map(prepare));
}

/** Entries that may share a run. The worker grouped what it could see; preprocessing may have made them differ. */
function groups(entries: Entry[], { batch, source }: LoadedModel): Entry[][] {
  if (entries.length <= 1) return entries.length === 0 ? [] : [entries];
  const byKey = new Map<string, Entry[]>();
  for (const entry of entries) {
    const key = compatibilityKey({
      signature: batch,
      tensors: entry.inputs,
      parameters: entry.parameters,
      version: source.version,
    });
    const group = byKey.get(key);
    if (group) group.push(entry);
    else byKey.set(key, [entry]);
  }
  return [...byKey.values()];
}

interface PlannedRun {
  run: number;
  group: Entry[];
  pieces: Piece[];
}

/** Runs every group; returns the milliseconds of all native runs. One more is assembled than there are instances. */
async function runGroups(
  grouped: Entry[][],
  batchId: string,
  model: LoadedModel,
  context: FlowContext,
): Promise<number> {
  const planned = grouped.flatMap((group) =>
    planRuns(
      group.map((entry) => entry.rows),
      model.batch.maxBatchSize,
    ).map((pieces) => ({ group, pieces })),
  );
  let next = 0;
  let runMs = 0;
  const takeRuns = async (): Promise<void> => {
    for (let run = next++; run < planned.length; run = next++) {
      const { group, pieces } = planned[run] as (typeof planned)[number];
      runMs += await runOnce({ run, group, pieces }, batchId, model, context);
    }
  };
  const lanes = Math.min(planned.length, model.source.config.instances + 1);
  await Promise.all(Array.from({ length: lanes }, takeRuns));
  return runMs;
}

/** Assembles, runs and splits one run; returns its native milliseconds. */
async function runOnce(
  { run, group, pieces: planned }: PlannedRun,
  batchId: string,
  model: LoadedModel,
  context: FlowContext,
): Promise<number> {
  // Rows of an item one of whose other runs has failed need not be run.
  const pieces = planned.filter(({ item }) => isOpen(group[item] as Entry));
  if (pieces.length === 0) return 0;
  const members = pieces.map(({ item }) => group[item] as Entry);
  let seconds = 0;
  try {
    const { parameters } = members[0] as Entry;
    const assembled = assemble(pieces, group, model.batch, context.buffers);
    const { rows } = assembled;
    const answer = await model.instances.run(assembled, { batchId, parameters }, () =>
      context.send({ type: 'run_started', batchId, run, rows }),
    );
    seconds = answer.seconds;
    context.send({ type: 'run_ended', batchId, run, seconds });
    if (answer.ok) keep(splitOutputs(answer.outputs, pieces, model.batch), pieces, members, rows);
    else failRun(members, answer.error);
  } catch (error) {
    failRun(members, toItemError(error, 'inference_failed'));
  }
  for (const member of new Set(members)) member.runMs += seconds * 1000;
  return seconds * 1000;
}

function keep(parts: RawTensor[][], pieces: readonly Piece[], members: readonly Entry[], rows: number): void {
  members.forEach((member, i) => {
    member.pieces.push({ from: (pieces[i] as Piece).from, outputs: parts[i] as RawTensor[] });
    member.batchRows = Math.max(member.batchRows, rows);
  });
}

function failRun(members: readonly Entry[], error: ItemError): void {
  const alone = new Set(members).size === 1;
  for (const member of members) member.runFailed = { alone, error };
}

async function postprocess(entries: readonly Entry[], { hooks, batch }: LoadedModel): Promise<void> {
  const finish = async (entry: Entry): Promise<void> => {
    try {
      // The runs of one item may have ended in any order.
      const pieces = entry.pieces.sort((a, b) => a.from - b.from).map((piece) => piece.outputs);
      const outputs = restoreLengths(joinPieces(pieces, batch), entry.inputs, batch);
      entry.answer = (await hooks.postprocess?.(outputs, entry.parameters, entry.note)) ?? { outputs };
    } catch (error) {
      entry.failed = toItemError(error, 'inference_failed');
    }
  };
  await Promise.all(entries.map(finish));
}
