/** A mapping as the rows of a table: what --dry-run shows, with what is wrong where it does not fit. */
import type { ColumnInfo } from '../columns.js';
import { textOfColumns } from './column-text.js';
import { OWN_SIZE } from './row-shape.js';
import { findMapping, type MappingWishes } from './settle-mapping.js';

export interface DescribedInput {
  input: string;
  datatype: string;
  /** Of a row: "30", "3 x 48 x 192", "any x 768", "" for a single value. */
  shape: string;
  /** As in --map. */
  columns: string;
  /** "float32", "30 float32", "float32, int64". */
  types: string;
  problems: string[];
}

export interface DescribedMapping {
  inputs: DescribedInput[];
  keep: string[];
  idColumn: string | null;
  /** What concerns no single input. */
  problems: string[];
}

export function describeMapping(wishes: MappingWishes): DescribedMapping {
  const { inputs, keep, idColumn, problems } = findMapping(wishes);
  return {
    inputs: inputs.map(({ input, columns, rowShape, problems: own }) => ({
      input: input.name,
      datatype: input.kind === 'image' ? 'image' : input.datatype,
      shape: (rowShape ?? []).map((size) => (size === OWN_SIZE ? 'any' : size)).join(' x '),
      columns: columns.length === 0 ? '' : textOfColumns(columns.map(({ name }) => name)),
      types: typesOf(columns),
      problems: own.map(sentence),
    })),
    keep,
    idColumn,
    problems: problems.map((problem) => `${problem.path}: ${sentence(problem)}`),
  };
}

function sentence({ expected, received }: { expected: string; received: string }): string {
  return `expected ${expected}, received ${received}`;
}

function typesOf(columns: readonly ColumnInfo[]): string {
  const counts = new Map<string, number>();
  for (const { type } of columns) {
    const name = type ?? 'by its values';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([type, count]) => (count === 1 ? type : `${count} ${type}`)).join(', ');
}
