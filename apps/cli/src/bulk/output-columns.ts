/** Which columns an output would have, before a row has run. */
import type { ColumnInfo } from '@remuda/core/bulk/columns';
import type { DescribedMapping } from '@remuda/core/bulk/mapping/describe-mapping';
import { chosenSignature } from '@remuda/core/bulk/output/output-choice';
import { layoutOf, type OutputLayout } from '@remuda/core/bulk/output/output-layout';
import type { ModelSignature } from '@remuda/schemas';
import type { ScorePlan } from './score-plan.js';

export interface OutputColumnPlan {
  column: string;
  /** "float32", "list<float32>[1000]", "string", … */
  type: string;
  what: string;
}

interface Known {
  signature: ModelSignature;
  mapping: DescribedMapping;
  columns: readonly ColumnInfo[];
}

/** @returns what cannot be written as an error */
export function outputColumns(
  { output = {} }: ScorePlan['job'],
  { signature, mapping, columns }: Known,
): OutputColumnPlan[] | Error {
  try {
    const { outputs, top_k: topK, argmax } = output;
    const choice = {
      ...(outputs ? { outputs } : {}),
      ...(topK ? { topK } : {}),
      ...(argmax ? { argmax } : {}),
    };
    const layout = layoutOf({
      ids: mapping.idColumn !== null,
      outputs: chosenSignature(signature.outputs, choice),
      keep: mapping.keep.map(
        (name) => columns.find((column) => column.name === name) ?? { name, type: null },
      ),
    });
    return planOf(layout, output.format === 'jsonl', mapping.idColumn);
  } catch (error) {
    return error as Error;
  }
}

function planOf(layout: OutputLayout, lines: boolean, idColumn: string | null): OutputColumnPlan[] {
  return [
    { column: layout.row, type: 'int64', what: 'number of the row, from 0' },
    ...(layout.id === null ? [] : [{ column: layout.id, type: 'string', what: `from "${idColumn}"` }]),
    ...layout.kept.map(({ name, type }) => ({ column: name, type: type ?? 'as it is', what: 'kept' })),
    ...layout.outputs.map(({ column, datatype, rowShape, scalar }) => ({
      column,
      type: scalar ? datatype : `list of ${datatype} [${rowShape.map((size) => size ?? 'any').join(' x ')}]`,
      what: 'output',
    })),
    ...(lines
      ? [{ column: layout.error, type: 'object', what: 'code and message of a row that failed' }]
      : [
          { column: layout.errorCode, type: 'string', what: 'of a row that failed' },
          { column: layout.errorMessage, type: 'string', what: 'of a row that failed' },
        ]),
  ];
}
