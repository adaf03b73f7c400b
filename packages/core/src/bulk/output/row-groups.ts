/**
 * Parts of a columnar output as groups of rows of a size that readers like. Where a group ends depends on its rows alone,
 * so that the file is the same bytes however the rows came in chunks.
 */
import type { ChunkResult } from '../chunk.js';
import type { EncodedPart, PartList } from './bulk-output.js';
import { castVector } from './cast-vector.js';
import { commonType, type FieldType, NONE, settledType } from './field-types.js';
import type { OutputLayout } from './output-layout.js';
import { declaredType, type Field, fieldsOf, vectorsOf } from './result-vectors.js';
import { decodeVectors, encodeVectors } from './vector-block.js';
import { VectorBuffer } from './vector-buffer.js';
import { sizeOf, typeOf, type Vector } from './vectors.js';

export interface GroupLimits {
  rows: number;
  /** A group ends behind the row that reaches them. */
  bytes: number;
}

export interface RowGroup {
  rows: number;
  /** Views: they hold until the next group is asked for. */
  vectors: Vector[];
}

interface PartFacts {
  types: FieldType[];
}

export function columnarPart(result: ChunkResult, layout: OutputLayout): EncodedPart {
  const vectors = vectorsOf(result, layout);
  const meta: PartFacts = { types: vectors.map(typeOf) };
  return { bytes: encodeVectors(vectors), meta };
}

/** The fields of a file: of each the narrowest type that holds it in all parts. */
export async function settledFields(parts: PartList, layout: OutputLayout): Promise<Field[]> {
  const fields = fieldsOf(layout);
  const types = fields.map(({ type }) => type);
  for await (const { meta } of parts)
    for (const [i, type] of (meta as PartFacts).types.entries())
      types[i] = commonType(types[i] ?? NONE, type);
  return fields.map((field, i) => {
    const type = types[i] as FieldType;
    return { ...field, type: settledType(type.kind === 'none' ? declaredType(layout, field.name) : type) };
  });
}

export async function* rowGroups(
  parts: PartList,
  fields: readonly Field[],
  limits: GroupLimits,
  progress?: (rows: number) => void,
): AsyncGenerator<RowGroup> {
  const buffers = fields.map(({ type }) => VectorBuffer.of(type));
  const group = (): RowGroup => ({ rows, vectors: buffers.map((buffer) => buffer.vector()) });
  let rows = 0;
  let bytes = 0;
  let joined = 0;
  for await (const part of parts) {
    const vectors = decodeVectors(await part.read()).map((vector, i) =>
      castVector(vector, (fields[i] as Field).type),
    );
    for (let from = 0; from < part.rows; ) {
      const to = groupEnd(
        vectors,
        from,
        Math.min(part.rows, from + limits.rows - rows),
        limits.bytes - bytes,
      );
      for (const [i, buffer] of buffers.entries()) buffer.append(vectors[i] as Vector, from, to);
      rows += to - from;
      bytes += bytesOfRows(vectors, from, to);
      from = to;
      if (rows < limits.rows && bytes < limits.bytes) continue;
      yield group();
      for (const buffer of buffers) buffer.clear();
      rows = 0;
      bytes = 0;
    }
    joined += part.rows;
    progress?.(joined);
  }
  if (rows > 0) yield group();
}

function bytesOfRows(vectors: readonly Vector[], from: number, to: number): number {
  return vectors.reduce((sum, vector) => sum + sizeOf(vector, from, to), 0);
}

/** The least end at which rows from `from` on reach `room` bytes, `most` where they do not. */
function groupEnd(vectors: readonly Vector[], from: number, most: number, room: number): number {
  let low = from + 1;
  let high = most;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bytesOfRows(vectors, from, middle) >= room) high = middle;
    else low = middle + 1;
  }
  return high;
}
