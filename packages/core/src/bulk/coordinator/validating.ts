/**
 * The beginning of a job, before a row runs: the input is there and is what it says, the model is there, the columns fit,
 * no id stands twice, nothing lies where the output goes. What is settled here holds to the end.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { RemudaError, toItemError } from '../../errors.js';
import type { Clock } from '../../lifecycle/clock.js';
import type { Target } from '../../models/model-resolver.js';
import type { Mapping } from '../chunk.js';
import type { ChunkDoor } from '../chunk-door.js';
import { INPUT_START, type OpenedInput } from '../input/bulk-input.js';
import type { BulkFault, BulkSpec } from '../job-record.js';
import { readWithTypes } from '../mapping/read-types.js';
import { textAt } from '../row-values.js';
import { DuplicateIds } from './duplicate-ids.js';
import type { Settled } from './journal-entries.js';
import { modelOfLines } from './model-of-lines.js';
import type { Patience } from './patience.js';
import { changed } from './scoring.js';
import type { CoordinatorTools } from './tools.js';

export interface ValidatingDeps {
  spec: BulkSpec;
  work: string;
  tools: CoordinatorTools;
  door: ChunkDoor;
  clock: Clock;
  patience: Patience;
  signal: AbortSignal;
  /** Throws where something else is wanted of the job. */
  goOn(): void;
  fetched(bytes: number, total: number | null): void;
}

export interface Opened {
  input: OpenedInput;
  settled: Settled;
  target: Target;
}

/** A fault of the input that is told line by line. */
export class InputFaults extends RemudaError {
  readonly faults: BulkFault[];
  constructor(error: RemudaError, faults: BulkFault[]) {
    super(error.code, error.message, error.details);
    this.faults = faults;
  }
}

const ID_ROWS = { rows: 16_384, bytes: 8 * 1024 * 1024 };
const LOOK_AGAIN_MS = 1_000;

/** @throws RemudaError that ends the job; PauseJob where the model does not come */
export async function openJob(deps: ValidatingDeps): Promise<Opened> {
  const { spec, tools, work, signal, fetched, door } = deps;
  const path = await tools.locate(spec, work, { signal, progress: fetched });
  const model = spec.model ?? (await modelOfLines(path));
  const target = await resolved(model, spec.version, deps);
  const signature = door.signatureOf(target);
  const input = await tools.open(spec, path, work);
  try {
    const mapping = (await isEmpty(input))
      ? NOTHING_MAPPED
      : tools.settle(spec, input.columns, signature, input.read);
    const batchRows = signature.batchable ? (signature.max_batch_size ?? 1) : 1;
    const settled: Settled = {
      model: signature.model,
      version: signature.version,
      digest: signature.digest,
      ...{ batchRows, path, mapping },
      ...{ read: readWithTypes(input, mapping, signature), compression: input.compression },
      ...(await factsOf(path)),
      ...{ totalRows: input.totalRows, totalBytes: input.totalBytes },
      answers: answersOf(spec),
    };
    return { input, settled, target };
  } catch (error) {
    await input.close();
    throw error;
  }
}

/** Of an input without a row that names no columns either: nothing can be missing, and the output is empty. */
const NOTHING_MAPPED: Mapping = { inputs: [], keep: [], idColumn: null };

async function isEmpty(input: OpenedInput): Promise<boolean> {
  if (input.columns.length > 0) return false;
  return (await input.cut(INPUT_START, { rows: 1, multipleOf: 1, bytes: 1 })) === null;
}

function answersOf({ output }: BulkSpec): Settled['answers'] {
  const { format, compression, outputs, topK, argmax } = output;
  return { format, compression, argmax, ...(outputs && { outputs }), ...(topK && { topK }) };
}

/**
 * The same after a crash: all as it was settled.
 * @param next row that is read next @throws RemudaError where that does not hold any more
 */
export async function reopenJob(settled: Settled, next: number, deps: ValidatingDeps): Promise<Opened> {
  const { spec, tools, work, signal, fetched } = deps;
  const path = await tools.locate(spec, work, { signal, progress: fetched });
  const facts = await factsOf(path);
  const before = settled.mtimeMs !== 0 || facts.mtimeMs !== 0;
  if (before && (facts.bytes !== settled.bytes || facts.mtimeMs !== settled.mtimeMs))
    throw facts.mtimeMs === 0 ? gone(path) : changed(settled, facts, next);
  const target = await resolved(settled.model, settled.version, deps);
  return { input: await tools.open(spec, path, work), settled, target };
}

function gone(path: string): RemudaError {
  return new RemudaError(
    'file_not_found',
    `the input ${path} is not there any more: put it back, then resume the job; nothing that was done is lost`,
    { path },
  );
}

/** A file's size and time; of what is no file (a folder of images) nothing is compared. */
export async function factsOf(path: string): Promise<{ bytes: number; mtimeMs: number }> {
  const found = await stat(path).catch(() => null);
  if (!found?.isFile()) return { bytes: 0, mtimeMs: 0 };
  return { bytes: found.size, mtimeMs: found.mtimeMs };
}

async function resolved(
  model: string,
  version: string | undefined,
  { door, patience, clock, goOn }: ValidatingDeps,
): Promise<Target> {
  for (;;) {
    try {
      const target = await door.resolve(model, version);
      patience.refresh();
      return target;
    } catch (error) {
      const reason = toItemError(error);
      if (!reason.retryable) throw error;
      patience.bear(reason);
      await new Promise<void>((resolve) => clock.after(LOOK_AGAIN_MS, resolve));
      goOn();
    }
  }
}

/** Reads the column of ids to its end. @throws InputFaults duplicate_custom_id, with the first of them */
export async function checkIds(
  { input, settled }: Opened,
  { tools, work, goOn }: Pick<ValidatingDeps, 'tools' | 'work' | 'goOn'>,
): Promise<void> {
  const { idColumn } = settled.mapping;
  if (idColumn === null) return;
  const ids = new DuplicateIds(join(work, 'ids'));
  try {
    let next = INPUT_START;
    for (;;) {
      goOn();
      const piece = await input.cut(next, { ...ID_ROWS, multipleOf: 1 });
      if (!piece) break;
      next = piece.next;
      const payload =
        piece.range.kind === 'payload' ? (piece.payload ?? (await input.payloadOf(piece))) : null;
      const { source, range, firstRow, rows } = piece;
      const wanted = { source, range, firstRow, rows, read: settled.read, columns: [idColumn] };
      const block = await tools.rows.read(wanted, payload);
      const column = block.columns.find(({ name }) => name === idColumn);
      if (!column) continue;
      for (let row = 0; row < rows; row++) {
        const id = block.failures.has(row) ? null : textAt(column, row);
        const written = id === null ? undefined : ids.add(id, firstRow + row);
        if (written) await written;
      }
    }
    const found = await ids.find();
    if (found.length > 0) throw duplicates(found, idColumn);
  } finally {
    await ids.close();
  }
}

function duplicates(found: { row: number; first: number }[], column: string): InputFaults {
  const faults = found.map(({ row, first }) => ({
    code: 'duplicate_custom_id',
    message: `row ${row} has the ${column} of row ${first}`,
    param: column,
    line: row + 1,
  }));
  const named = faults.slice(0, 3).map(({ message }) => message);
  return new InputFaults(
    new RemudaError(
      'duplicate_custom_id',
      `${named.join('; ')}${found.length > 3 ? ` and more (${found.length} were looked at)` : ''}: each row needs a ${column} of its own`,
      { duplicates: found },
    ),
    faults,
  );
}
