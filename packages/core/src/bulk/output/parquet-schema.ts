/** Fields of an output as a Parquet schema: standard three-level lists, whole numbers with their widths. */
import type { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { NumericType } from '../columns.js';
import type { FieldType } from './field-types.js';
import type { Field } from './result-vectors.js';

/** As the writer knows it, which is built against a hyparquet of its own. */
export type FileMetaData = Parameters<typeof writeMetadata>[1];
type SchemaElement = FileMetaData['schema'][number];
type Primitive = Omit<SchemaElement, 'name' | 'repetition_type'>;

const NUMBER: Readonly<Record<NumericType, Primitive>> = {
  bool: { type: 'BOOLEAN' },
  int8: whole('INT32', 8, true),
  int16: whole('INT32', 16, true),
  int32: { type: 'INT32' },
  int64: { type: 'INT64' },
  uint8: whole('INT32', 8, false),
  uint16: whole('INT32', 16, false),
  uint32: whole('INT32', 32, false),
  uint64: whole('INT64', 64, false),
  float32: { type: 'FLOAT' },
  float64: { type: 'DOUBLE' },
};

/** By the older mark alone: the library writes the width of the newer one in a way that readers refuse. */
function whole(type: 'INT32' | 'INT64', bits: 8 | 16 | 32 | 64, signed: boolean): Primitive {
  return { type, converted_type: `${signed ? 'INT' : 'UINT'}_${bits}` };
}

export function parquetSchema(fields: readonly Field[]): SchemaElement[] {
  return [
    { name: 'schema', num_children: fields.length },
    ...fields.flatMap(({ name, type, required }) => elementsOf(name, type, required)),
  ];
}

function elementsOf(name: string, type: FieldType, required: boolean): SchemaElement[] {
  const repetition_type = required ? 'REQUIRED' : 'OPTIONAL';
  if (type.kind !== 'list') return [{ name, repetition_type, ...primitiveOf(type) }];
  return [
    { name, repetition_type, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    ...elementsOf('element', type.of, false),
  ];
}

function primitiveOf(type: FieldType): Primitive {
  if (type.kind === 'number') return NUMBER[type.type];
  if (type.kind === 'binary') return { type: 'BYTE_ARRAY' };
  return { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
}

/** The innermost element of a field, and the names on the way to it. */
export function leafOf({ name, type, required }: Field): { path: string[]; element: SchemaElement } {
  const elements = elementsOf(name, type, required);
  return { path: elements.map((element) => element.name), element: elements.at(-1) as SchemaElement };
}
