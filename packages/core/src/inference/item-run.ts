/**
 * Items through a model: preprocess, native runs, postprocess, each item with its own end. A batch of requests
 * (batch-flow.ts) and the golden cases of a version (golden-check.ts) take this same way.
 */
import type { ItemError, RawTensor } from '@remuda/schemas';
import { compatibilityKey } from '../batching/compatibility.js';
import { toItemError } from '../errors.js';
import type { LaneRank } from '../fairness/lane-share.js';
import type { ItemAnswer } from '../harness/harness.js';
import type { TimeLimits } from '../store/outcome.js';
import { type AssembledBatch, assemble, type Piece, planRuns, rowsOf } from './batch-assembly.js';
import { joinPieces, restoreLengths, splitOutputs } from './batch-split.js';
import type { BufferPool } from './buffer-pool.js';
import { dropLate, latestStart } from './late-items.js';
import type { LoadedModel } from './loaded-model.js';
import type { FromRunner } from './runner-protocol.js';

/** What the runs of items need from outside; `send` is told of each native run. */
export interface ItemRunContext {
  buffers: BufferPool;
  send(message: FromRunner): void;
  /** What a run is expected to take: an item that would be over after its finishBy is not run. Default: not known. */
  expectedRunMs?: number;
  /** Whose turn its runs take. Default: INTERACTIVE. */
  lane?: LaneRank;
  /** Number of the first run, where a batch is run in several calls. Default: 0. */
  firstRun?: number;
}

/** An item and what has become of it so far: `answer`, `failed` or `runFailed` says how it ended. */
export interface ItemRun {
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
  /** Deadlines of its request, where it has any. */
  limits?: TimeLimits;
  /** A run of it has begun in time. */
  begun?: boolean;
  /** Its time was up: `failed` says so. */
  expired?: boolean;
  answer?: ItemAnswer;
  /** It cannot be run, or its answer not be read. */
  failed?: ItemError;
  runFailed?: { alone: boolean; error: ItemError };
}

export function newItemRun(inputs: RawTensor[], parameters: Record<string, unknown>): ItemRun {
  return { inputs, parameters, note: undefined, rows: 0, pieces: [], runMs: 0, batchRows: 0 };
}

/** True while nothing has gone wrong with the item. */
function isOpen(item: ItemRun): boolean {
  return !item.failed && !item.runFailed;
}

/** Runs items to their ends; returns the milliseconds of all native runs. Never rejects for the fault of an item. */
export async function runItems(
  items: readonly ItemRun[],
  batchId: string,
  model: LoadedModel,
  context: ItemRunContext,
): Promise<number> {
  await preprocess(items, model);
  const runMs = await runGroups(groups(items.filter(isOpen), model), batchId, model, context);
  await postprocess(items.filter(isOpen), model);
  return runMs;
}

async function preprocess(items: readonly ItemRun[], { hooks, batch }: LoadedModel): Promise<void> {
  const prepare = async (item: ItemRun): Promise<void> => {
    try {
      const prepared = await hooks.preprocess?.(item.inputs, item.parameters);
      if (prepared && 'error' in prepared) {
        item.failed = prepared.error;
        return;
      }
      if (prepared) {
        item.inputs = prepared.inputs;
        item.note = prepared.note;
      }
      item.rows = rowsOf(item.inputs, batch);
    } catch (error) {
      item.failed = toItemError(error, 'item_rejected');
    }
  };
  await Promise.all(items.map(prepare));
}

/** Items that may share a run. The worker grouped what it could see; preprocessing may have made them differ. */
function groups(items: ItemRun[], { batch, source }: LoadedModel): ItemRun[][] {
  if (items.length <= 1) return items.length === 0 ? [] : [items];
  const byKey = new Map<string, ItemRun[]>();
  for (const item of items) {
    const key = compatibilityKey({
      signature: batch,
      tensors: item.inputs,
      parameters: item.parameters,
      version: source.version,
    });
    const group = byKey.get(key);
    if (group) group.push(item);
    else byKey.set(key, [item]);
  }
  return [...byKey.values()];
}

interface PlannedRun {
  run: number;
  group: ItemRun[];
  pieces: Piece[];
}

/** Runs every group; returns the milliseconds of all native runs. */
async function runGroups(
  grouped: ItemRun[][],
  batchId: string,
  model: LoadedModel,
  context: ItemRunContext,
): Promise<number> {
  const planned = grouped.flatMap((group) =>
    planRuns(
      group.map((item) => item.rows),
      model.batch.maxBatchSize,
    ).map((pieces) => ({ group, pieces })),
  );
  const runsMs = await Promise.all(
    planned.map(({ group, pieces }, at) =>
      runOnce({ run: (context.firstRun ?? 0) + at, group, pieces }, batchId, model, context),
    ),
  );
  return runsMs.reduce((sum, ms) => sum + ms, 0);
}

/** Assembles, runs and splits one run; returns its native milliseconds. */
async function runOnce(
  { run, group, pieces: planned }: PlannedRun,
  batchId: string,
  model: LoadedModel,
  context: ItemRunContext,
): Promise<number> {
  let pieces = planned;
  const make = (): AssembledBatch | undefined => {
    dropLate(group, performance.now(), context.expectedRunMs);
    // Rows of an item one of whose other runs has failed need not be run.
    pieces = planned.filter(({ item }) => isOpen(group[item] as ItemRun));
    if (pieces.length === 0) return undefined;
    const batch = assemble(pieces, group, model.batch, context.buffers);
    return { ...batch, goodUntil: Math.min(...membersOf().map((item) => latestStart(item, context))) };
  };
  const membersOf = (): ItemRun[] => pieces.map(({ item }) => group[item] as ItemRun);
  let rows = 0;
  let seconds = 0;
  try {
    const { parameters } = group[0] as ItemRun;
    const answer = await model.instances.run(
      make,
      { batchId, parameters },
      (count) => {
        rows = count;
        for (const member of membersOf()) member.begun = true;
        context.send({ type: 'run_started', batchId, run, rows });
      },
      context.lane,
    );
    if (!answer) return 0;
    seconds = answer.seconds;
    context.send({ type: 'run_ended', batchId, run, seconds });
    if (answer.ok) keep(splitOutputs(answer.outputs, pieces, model.batch), pieces, membersOf(), rows);
    else failRun(membersOf(), answer.error);
  } catch (error) {
    failRun(membersOf(), toItemError(error, 'inference_failed'));
  }
  for (const member of new Set(membersOf())) member.runMs += seconds * 1000;
  return seconds * 1000;
}

function keep(
  parts: RawTensor[][],
  pieces: readonly Piece[],
  members: readonly ItemRun[],
  rows: number,
): void {
  members.forEach((member, i) => {
    member.pieces.push({ from: (pieces[i] as Piece).from, outputs: parts[i] as RawTensor[] });
    member.batchRows = Math.max(member.batchRows, rows);
  });
}

function failRun(members: readonly ItemRun[], error: ItemError): void {
  const alone = new Set(members).size === 1;
  for (const member of members) member.runFailed = { alone, error };
}

async function postprocess(items: readonly ItemRun[], { hooks, batch }: LoadedModel): Promise<void> {
  const finish = async (item: ItemRun): Promise<void> => {
    try {
      // The runs of one item may have ended in any order.
      const pieces = item.pieces.sort((a, b) => a.from - b.from).map((piece) => piece.outputs);
      const outputs = restoreLengths(joinPieces(pieces, batch), item.inputs, batch);
      item.answer = (await hooks.postprocess?.(outputs, item.parameters, item.note)) ?? { outputs };
    } catch (error) {
      item.failed = toItemError(error, 'inference_failed');
    }
  };
  await Promise.all(items.map(finish));
}
