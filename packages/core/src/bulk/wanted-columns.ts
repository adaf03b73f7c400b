/** Which columns of an input are read: of formats by column no others. */
import type { Mapping } from './chunk.js';

/** null: all, since a row is one object. */
export function wantedColumns({ inputs, keep, idColumn }: Mapping): string[] | null {
  if (inputs.length === 0) return null;
  return [
    ...new Set([...inputs.flatMap((input) => input.columns), ...keep, ...(idColumn ? [idColumn] : [])]),
  ];
}
