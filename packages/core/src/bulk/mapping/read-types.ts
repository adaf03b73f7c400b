/**
 * Types of the columns of CSV, whose fields are texts: what an input needs of the columns that make it. Without this each
 * chunk would guess by its own rows, and "007" would be 7 in an id or in a text.
 */
import type { BulkColumnType, Datatype, ModelSignature, SignatureTensor } from '@remuda/schemas';
import type { Mapping, ReadSettings } from '../chunk.js';
import type { OpenedInput } from '../input/bulk-input.js';

/** Floats are read as wide as they are written: one that is too large for the model must be seen to be. */
const TYPE: Readonly<Record<Datatype, BulkColumnType>> = {
  BOOL: 'bool',
  UINT8: 'uint8',
  UINT16: 'uint16',
  UINT32: 'uint32',
  UINT64: 'uint64',
  INT8: 'int8',
  INT16: 'int16',
  INT32: 'int32',
  INT64: 'int64',
  FP16: 'float64',
  FP32: 'float64',
  FP64: 'float64',
  BYTES: 'string',
};

/** The settings of an input with a type for each column that is used and has none. */
export function readWithTypes(
  { read }: Pick<OpenedInput, 'read'>,
  mapping: Mapping,
  { inputs }: Pick<ModelSignature, 'inputs'>,
): ReadSettings {
  if (read.format !== 'csv') return read;
  const types: Record<string, BulkColumnType> = Object.create(null);
  for (const { input: name, columns, rowShape } of mapping.inputs) {
    const input = inputs.find((one) => one.name === name) as SignatureTensor;
    const [only] = columns as [string];
    // One column for several elements holds them as a JSON array.
    if (columns.length === 1 && rowShape.some((size) => size !== 1)) types[only] ??= 'json';
    for (const column of columns) types[column] ??= TYPE[input.datatype];
  }
  if (mapping.idColumn !== null) types[mapping.idColumn] = 'string';
  return { ...read, types: { ...types, ...read.types } };
}
