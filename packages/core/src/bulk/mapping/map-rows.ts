/**
 * Rows as inputs of the model: the columns of a block become tensors, as the mapping says, in runs of consecutive rows
 * that lie one behind the other. A row that does not fit is left out with its reason, and its neighbours go on.
 */
import type { ModelSignature, RawTensor, SignatureTensor } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import { nearNames } from '../../repository/near-names.js';
import type { InputMapping, Mapping } from '../chunk.js';
import type { Column, RowBlock } from '../columns.js';
import type { InputRows } from '../row-items.js';
import type { MappedRows } from '../run-chunk.js';
import { fillBytesInput } from './fill-bytes-input.js';
import { fillNumberInput } from './fill-numbers-input.js';
import type { FilledInput } from './filled-input.js';
import { mapRequests } from './request-rows.js';
import { RowFailures } from './row-failures.js';

/** Rows of texts in a run: cutting texts apart costs as much as there are in it. */
const MOST_TEXTS = 64;

/**
 * @param firstRow number of the block's first row in the input, for messages
 * @throws RemudaError invalid_request where a column of the mapping is not there
 */
export function mapRows(
  block: RowBlock,
  mapping: Mapping,
  signature: ModelSignature,
  firstRow?: number,
): MappedRows {
  const failures = new RowFailures(block, firstRow);
  if (mapping.inputs.length === 0) {
    const runs = mapRequests(block, signature, mapping.parameters, failures);
    return { runs, failures: failures.found };
  }
  const filled = signature.inputs.map((input) => {
    const own = mapping.inputs.find((one) => one.input === input.name);
    if (!own) throw new RemudaError('invalid_request', `the mapping says nothing of input "${input.name}"`);
    return fillInput(block, input, own, failures);
  });
  failDisagreeing(filled, block.rows, failures);
  const runs = runsOf(filled, block.rows, failures.out, mapping.parameters);
  return { runs, failures: failures.found };
}

function fillInput(
  { columns, rows }: RowBlock,
  input: SignatureTensor,
  { columns: names, rowShape }: InputMapping,
  failures: RowFailures,
): FilledInput {
  const byName = new Map(columns.map((column) => [column.name, column]));
  const own = names.map((name) => byName.get(name) ?? missing(name, input, columns));
  const given = { input, columns: own, rowShape, rows };
  return input.datatype === 'BYTES' ? fillBytesInput(given, failures) : fillNumberInput(given, failures);
}

function missing(name: string, input: SignatureTensor, columns: readonly Column[]): never {
  const near = nearNames(
    name,
    columns.map((column) => column.name),
  );
  const hint = near.length > 0 ? ` (there is "${near[0]}")` : '';
  throw new RemudaError(
    'invalid_request',
    `the rows have no column "${name}", which input "${input.name}" is made of${hint}`,
    { column: name, input: input.name },
  );
}

/** Axes of one name have one size in a row, whatever input they belong to. */
function failDisagreeing(filled: readonly FilledInput[], rows: number, failures: RowFailures): void {
  if (!filled.some(({ ragged }) => ragged)) return;
  for (let row = 0; row < rows; row++) {
    if (failures.out[row]) continue;
    const seen = new Map<string, { size: number; input: string }>();
    for (const { input, shapeOf } of filled) {
      const shape = shapeOf(row);
      const axes = input.shape.filter((_, axis) => axis !== input.batch_axis);
      for (const [axis, symbol] of axes.entries()) {
        if (typeof symbol !== 'string' || symbol === '') continue;
        const size = shape[axis] as number;
        const first = seen.get(symbol);
        if (!first) seen.set(symbol, { size, input: input.name });
        else if (first.size !== size) {
          const expected = `${first.size} values for "${input.name}", as "${first.input}" has (axis "${symbol}")`;
          failures.add(row, '', expected, String(size));
        }
      }
    }
  }
}

function runsOf(
  filled: readonly FilledInput[],
  rows: number,
  out: Uint8Array,
  parameters: Record<string, unknown> | undefined,
): InputRows[] {
  const most = mostRows(filled);
  const ragged = filled.filter((one) => one.ragged);
  const runs: InputRows[] = [];
  let from = 0;
  const close = (to: number): void => {
    if (to > from) runs.push(runOf(filled, from, to, parameters));
  };
  for (let row = 0; row < rows; row++) {
    if (out[row]) {
      close(row);
      from = row + 1;
    } else if (row - from >= most || (row > from && !ragged.every((one) => sameShape(one, row)))) {
      close(row);
      from = row;
    }
  }
  close(rows);
  return runs;
}

/** One, where rows do not lie along the first axis of every input, or each is a file that is worked on alone. */
function mostRows(filled: readonly FilledInput[]): number {
  if (filled.some(({ input }) => input.batch_axis !== 0 || input.kind === 'image')) return 1;
  return filled.some(({ input }) => input.datatype === 'BYTES') ? MOST_TEXTS : Number.POSITIVE_INFINITY;
}

function sameShape({ shapeOf }: FilledInput, row: number): boolean {
  const before = shapeOf(row - 1);
  return shapeOf(row).every((size, axis) => size === before[axis]);
}

function runOf(
  filled: readonly FilledInput[],
  from: number,
  to: number,
  parameters: Record<string, unknown> | undefined,
): InputRows {
  const tensors = filled.map(({ input, bytes, startOf, shapeOf }): RawTensor => {
    const shape = [...shapeOf(from)];
    // A single row lies in memory alike, wherever the axis of rows stands.
    if (input.batch_axis !== null) shape.splice(input.batch_axis, 0, to - from);
    return {
      name: input.name,
      datatype: input.datatype,
      shape,
      bytes: bytes.subarray(startOf(from), startOf(to)),
    };
  });
  return { from, rows: to - from, tensors, ...(parameters && { parameters }) };
}
