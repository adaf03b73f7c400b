/**
 * The runner's side of a chunk: claimed, its rows read where they lie, mapped to inputs, run as a stream of full batches
 * (the next is made ready while one runs; other requests go before each), and answered in one outcome. Every row gets an
 * answer of its own; what kills the process is found by the coordinator, which sends the halves.
 */
import type { ItemError, ModelSignature, RawTensor } from '@remuda/schemas';
import { toItemError } from '../errors.js';
import { BULK } from '../fairness/lane-share.js';
import type { FlowContext, RunMessage } from '../inference/batch-flow.js';
import { type ItemRun, newItemRun, runItems } from '../inference/item-run.js';
import type { LoadedModel } from '../inference/loaded-model.js';
import { errorFrame } from '../inference/run-batch.js';
import type { BatchUnit, UnitOutcome } from '../inference/runner-protocol.js';
import { outcomeOfWrite } from '../inference/write-outcomes.js';
import type { Claim, UnitWrite } from '../store/outcome.js';
import { idsOf, inputOf, keptOf } from './block-rows.js';
import type { ChunkOrder, ChunkResult, Mapping, OutputChoice, OutputColumn, RowFailure } from './chunk.js';
import { decodeOrder, encodeResult } from './chunk-codec.js';
import type { Column, RowBlock } from './columns.js';
import { OutputGatherer } from './gather-outputs.js';
import type { RowReader } from './input/bulk-input.js';
import { joinColumns } from './join-columns.js';
import { batchesOf, halvesOf, type InputRows, mayShareItem, partOf } from './row-items.js';
import { wantedColumns } from './wanted-columns.js';

/** Rows as inputs; rows that cannot be one are left out. */
export interface MappedRows {
  runs: InputRows[];
  /** By index in the block. */
  failures: Map<number, ItemError>;
}

export interface ChunkTools {
  rows: RowReader;
  /** @param firstRow number of the block's first row in the input, for messages */
  map(block: RowBlock, mapping: Mapping, signature: ModelSignature, firstRow: number): MappedRows;
  /** What is wanted of the outputs. */
  choose(outputs: OutputColumn[], choice: OutputChoice): OutputColumn[];
}

export interface ChunkContext extends FlowContext {
  chunks: ChunkTools;
}

/** Batches made ready beside those that run: one waits for its turn, and of images one is decoded. */
const AHEAD = 2;

/** Runs a chunk from claim to written outcome and reports it. Rejects only when the store does. */
export async function flowChunk(
  message: RunMessage,
  model: LoadedModel,
  context: ChunkContext,
): Promise<void> {
  const started = performance.now();
  const unit = message.units[0] as BatchUnit;
  const [claim] = await context.store.claimAndFetch([unit], message.workerId, message.begun);
  try {
    const fetchMs = performance.now() - started;
    if (claim?.verdict !== 'run') return report(message, context, unclaimed(claim), fetchMs, 0, 0);
    const { write, runMs } = await answerChunk(unit, claim.payload, message, model, context);
    const beforeWrite = performance.now();
    const [verdict] = await context.store.writeOutcomes([write]);
    const outcome = outcomeOfWrite(verdict, write.error?.code);
    report(message, context, outcome, fetchMs, runMs, performance.now() - beforeWrite);
  } finally {
    if (claim?.verdict === 'run' && claim.memory) context.buffers.release(claim.memory);
  }
}

function unclaimed(claim: Claim | undefined): UnitOutcome {
  const reason = claim?.verdict;
  if (reason === 'fenced' || reason === 'already_terminal') return { kind: 'dropped', reason };
  return { kind: 'dropped', reason: 'record_missing' };
}

function report(
  { batchId }: RunMessage,
  { send }: ChunkContext,
  outcome: UnitOutcome,
  fetchMs: number,
  runMs: number,
  writeMs: number,
): void {
  send({ type: 'batch_done', batchId, outcomes: [outcome], fetchMs, runMs, writeMs });
}

async function answerChunk(
  unit: BatchUnit,
  payload: Uint8Array,
  message: RunMessage,
  model: LoadedModel,
  context: ChunkContext,
): Promise<{ write: UnitWrite; runMs: number }> {
  try {
    const result = await runChunk(payload, message, model, context);
    return { write: { unit, kind: 'ok', frame: encodeResult(result) }, runMs: result.seconds * 1000 };
  } catch (failure) {
    const error = toItemError(failure, 'invalid_row');
    return { write: { unit, kind: 'error', error, frame: errorFrame({ error }) }, runMs: 0 };
  }
}

/** @throws RemudaError source_unreadable, invalid_file and what else is no single row's fault */
async function runChunk(
  payload: Uint8Array,
  message: RunMessage,
  model: LoadedModel,
  context: ChunkContext,
): Promise<ChunkResult> {
  const decoded = decodeOrder(payload);
  if (!decoded) throw new Error('a request of the lane for chunks holds no chunk');
  const { order } = decoded;
  const { from, to } = order.slice ?? { from: 0, to: order.rows };
  const run = new ChunkRun({ from, to, message, model, context });
  const aside: BlockAside[] = [];
  for await (const part of blocksOf(order, decoded.payload, model.batch.maxBatchSize, context.chunks.rows))
    aside.push(await run.block(part, order));
  return {
    firstRow: order.firstRow + from,
    rows: to - from,
    ...joinedAside(aside),
    outputs: context.chunks.choose(run.outputs.columns(), order.choice),
    digest: model.signature.digest,
    device: context.device,
    workerId: message.workerId,
    seconds: run.seconds,
  };
}

/** Rows of a block that is read at once: as many as a processor keeps at hand. */
const BLOCK_ROWS = 16_384;

interface BlockPart {
  block: RowBlock;
  /** Place of its first row in the range. */
  at: number;
}

/** The rows of a range, some thousand at a time where they can be read by number; the next are read meanwhile. */
async function* blocksOf(
  { range, source, read, mapping, firstRow, rows, slice }: ChunkOrder,
  payload: Uint8Array | null,
  batchRows: number,
  reader: RowReader,
): AsyncGenerator<BlockPart> {
  const columns = wantedColumns(mapping);
  if (range.kind !== 'rows') {
    yield { at: 0, block: await reader.read({ source, range, read, columns, firstRow, rows }, payload) };
    return;
  }
  const { from, to } = slice ?? { from: 0, to: rows };
  const step = Math.max(1, Math.floor(BLOCK_ROWS / batchRows)) * batchRows;
  const readFrom = (at: number): Promise<RowBlock> => {
    const count = Math.min(step, to - at);
    const own = { kind: 'rows' as const, from: range.from + at, to: range.from + at + count };
    const block = reader.read(
      { source, range: own, read, columns, firstRow: firstRow + at, rows: count },
      null,
    );
    // It may fail before anybody waits for it.
    block.catch(() => {});
    return block;
  };
  let next: Promise<RowBlock> | undefined = readFrom(from);
  for (let at = from; next; at += step) {
    const block: RowBlock = await next;
    next = at + step < to ? readFrom(at + step) : undefined;
    yield { at, block };
  }
}

/** What of a block goes into the result beside the outputs: its rows within the slice. */
interface BlockAside {
  rowNumbers: number[] | undefined;
  ids: ChunkResult['ids'];
  kept: Column[];
  failures: RowFailure[];
}

function joinedAside(
  parts: readonly BlockAside[],
): Pick<ChunkResult, 'rowNumbers' | 'ids' | 'kept' | 'failures'> {
  const numbers = parts.flatMap(({ rowNumbers }) => rowNumbers ?? []);
  const ids = parts.flatMap((part) => part.ids ?? []);
  return {
    ...(numbers.length > 0 && { rowNumbers: numbers }),
    ids: parts.some((part) => part.ids !== null) ? ids : null,
    kept: joinColumns(parts.map(({ kept }) => kept)),
    failures: parts.flatMap(({ failures }) => failures),
  };
}

interface ChunkRunNeeds {
  /** Rows of the range that are wanted. */
  from: number;
  to: number;
  message: RunMessage;
  model: LoadedModel;
  context: ChunkContext;
}

class ChunkRun {
  readonly outputs: OutputGatherer;
  /** Native. */
  seconds = 0;
  /** By place in the range. */
  readonly #failures = new Map<number, ItemError>();
  readonly #needs: ChunkRunNeeds;
  readonly #share: boolean;
  /** Numbers of its runs: one is never used twice. */
  #run = 0;

  constructor(needs: ChunkRunNeeds) {
    this.#needs = needs;
    this.#share = mayShareItem(needs.model);
    this.outputs = new OutputGatherer(needs.to - needs.from);
  }

  /** Runs the rows of a block that are wanted. */
  async block({ block, at }: BlockPart, { mapping, firstRow }: ChunkOrder): Promise<BlockAside> {
    const { model, context, from, to } = this.#needs;
    const begin = Math.max(from - at, 0);
    const end = Math.min(to - at, block.rows);
    const mapped = context.chunks.map(block, mapping, model.signature, firstRow + at);
    const inside = mapped.runs.flatMap((run) => within(run, begin, end));
    await this.#stream(inside.map((run) => ({ ...run, from: run.from + at })));
    const failed = [...block.failures, ...mapped.failures].filter(([row]) => row >= begin && row < end);
    for (const [row, error] of failed) this.#failures.set(row + at, error);
    const failures = [...this.#failures].sort(([a], [b]) => a - b);
    this.#failures.clear();
    return {
      rowNumbers: block.rowNumbers?.slice(begin, end),
      ids: idsOf(block, mapping, begin, end),
      kept: keptOf(block, mapping, begin, end),
      failures: failures.map(([row, error]) => ({
        index: row - from,
        error,
        input: inputOf(block, row - at),
      })),
    };
  }

  /** As a stream of full batches, some of them ahead of those that run. */
  async #stream(runs: readonly InputRows[]): Promise<void> {
    const { model } = this.#needs;
    const { maxBatchSize } = model.batch;
    const batches = batchesOf(runs, maxBatchSize, this.#share ? maxBatchSize : 1)[Symbol.iterator]();
    const work = async (): Promise<void> => {
      for (let next = batches.next(); !next.done; next = batches.next()) await this.#batch(next.value);
    };
    await Promise.all(Array.from({ length: model.instances.size + AHEAD }, work));
  }

  async #batch(rows: readonly InputRows[]): Promise<void> {
    const { message, model, context } = this.#needs;
    const items = rows.map(({ tensors, parameters }) => newItemRun(tensors, parameters ?? {}));
    const firstRun = this.#run;
    this.#run += rows.reduce((sum, one) => sum + one.rows, 0);
    const own = { ...context, lane: BULK, firstRun } as const;
    const ms = await runItems(items, message.batchId, model, own);
    // Only now: others have added to it meanwhile.
    this.seconds += ms / 1000;
    const together: InputRows[] = [];
    for (const [i, item] of items.entries()) {
      const one = rows[i] as InputRows;
      const error = item.failed ?? item.runFailed?.error;
      if (!error) this.#keep(one, item);
      else if (item.runFailed?.alone === false) together.push(one);
      else if (one.rows === 1) this.#failures.set(one.from, error);
      else for (const half of halvesOf([one])) await this.#batch(half);
    }
    // One of them is at fault, and which is not known yet.
    if (together.length > 0)
      for (const half of halvesOf(together)) if (half.length > 0) await this.#batch(half);
  }

  #keep({ from: row, rows }: InputRows, { answer }: ItemRun): void {
    const { model, from } = this.#needs;
    for (const output of answer?.outputs ?? []) {
      const { batch_axis: axis } = model.signature.outputs.find(({ name }) => name === output.name) ?? {
        batch_axis: null,
      };
      this.outputs.add(row - from, rows, output, withoutAxis(output, axis));
    }
  }
}

/** The part of the rows that lies in [from, to). */
function within(run: InputRows, from: number, to: number): InputRows[] {
  const begin = Math.max(run.from, from);
  const end = Math.min(run.from + run.rows, to);
  if (begin >= end) return [];
  return [partOf(run, begin - run.from, end - run.from)];
}

function withoutAxis({ shape }: RawTensor, axis: number | null): number[] {
  return axis === null ? [...shape] : shape.filter((_, at) => at !== axis);
}
