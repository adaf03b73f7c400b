/**
 * Which columns an output has, in which order and under which names: row, custom_id, kept columns, outputs, error. Known
 * before any row has run, so that all parts agree, and a job without rows has a file with a header.
 */
import { ERROR_COLUMN, isScalar, type KeptField, OUTPUT_COLUMNS, type OutputField } from './bulk-output.js';

export interface LayoutOptions {
  /** Whether rows have a custom_id. */
  ids: boolean;
  outputs: readonly OutputField[];
  keep: readonly KeptField[];
}

export interface NamedOutput extends OutputField {
  /** Of its column. */
  column: string;
  scalar: boolean;
}

export interface OutputLayout {
  row: string;
  id: string | null;
  kept: readonly KeptField[];
  outputs: readonly NamedOutput[];
  errorCode: string;
  errorMessage: string;
  /** Of lines of JSON. */
  error: string;
}

/** Kept columns have their names for sure, then outputs; the others move aside. */
export function layoutOf({ ids, outputs, keep }: LayoutOptions): OutputLayout {
  const taken = new Set(keep.map(({ name }) => name));
  const claim = (wanted: string): string => {
    let name = wanted;
    while (taken.has(name)) name = `_${name}`;
    taken.add(name);
    return name;
  };
  const named = outputs.map((output) => ({
    ...output,
    column: claim(output.name),
    scalar: isScalar(output.rowShape),
  }));
  return {
    kept: keep,
    outputs: named,
    row: claim(OUTPUT_COLUMNS.row),
    id: ids ? claim(OUTPUT_COLUMNS.id) : null,
    errorCode: claim(OUTPUT_COLUMNS.errorCode),
    errorMessage: claim(OUTPUT_COLUMNS.errorMessage),
    error: claim(ERROR_COLUMN),
  };
}
