/** Arrow IPC files: the vectors are nearly its buffers already. Record batches of 64k rows, one behind the other. */
import {
  Field as ArrowField,
  Binary,
  Bool,
  type Data,
  type DataType,
  Float32,
  Float64,
  Int8,
  Int16,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  Schema,
  Struct,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Utf8,
} from 'apache-arrow';
import type { ChunkResult } from '../chunk.js';
import type { NumericType } from '../columns.js';
import type { ByteSink, EncodedPart, OutputEncoder, PartList } from './bulk-output.js';
import type { FieldType } from './field-types.js';
import type { OutputLayout } from './output-layout.js';
import { packedBits } from './parquet-values.js';
import type { Field } from './result-vectors.js';
import { columnarPart, rowGroups, settledFields } from './row-groups.js';
import type { Vector } from './vectors.js';

const GROUP = { rows: 65_536, bytes: 32 * 2 ** 20 };

export class ArrowEncoder implements OutputEncoder {
  readonly head = null;
  readonly #layout: OutputLayout;

  constructor(layout: OutputLayout) {
    this.#layout = layout;
  }

  async encode(result: ChunkResult): Promise<EncodedPart> {
    return columnarPart(result, this.#layout);
  }

  async join(parts: PartList, sink: ByteSink, progress?: (rows: number) => void): Promise<void> {
    const fields = await settledFields(parts, this.#layout);
    const schema = schemaOf(fields);
    const writer = new ArrowFile(schema);
    for await (const { rows, vectors } of rowGroups(parts, fields, GROUP, progress)) {
      const children = vectors.map((vector, i) => dataOf(vector, (fields[i] as Field).type));
      const type = new Struct(schema.fields);
      writer.write(new RecordBatch(schema, makeData({ type, length: rows, nullCount: 0, children })));
      await writer.drain(sink);
    }
    writer.finish();
    await writer.drain(sink);
  }
}

/** The library's writer, whose bytes are taken away as they come: its own queue would hold the whole file. */
class ArrowFile extends RecordBatchFileWriter {
  #pending: Uint8Array[] = [];

  constructor(schema: Schema) {
    super({ autoDestroy: false });
    this.reset(undefined, schema);
  }

  async drain(sink: ByteSink): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    for (const bytes of pending) await sink.write(bytes);
  }

  protected override _write(chunk: ArrayBufferView | ArrayBufferLike): this {
    if (!this._started) return this;
    const bytes = ArrayBuffer.isView(chunk)
      ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      : new Uint8Array(chunk);
    if (bytes.byteLength > 0) this.#pending.push(bytes);
    this._position += bytes.byteLength;
    return this;
  }
}

function schemaOf(fields: readonly Field[]): Schema {
  return new Schema(
    fields.map(({ name, type, required }) => new ArrowField(name, arrowType(type), !required)),
  );
}

const NUMBER: Readonly<Record<NumericType, () => DataType>> = {
  bool: () => new Bool(),
  int8: () => new Int8(),
  int16: () => new Int16(),
  int32: () => new Int32(),
  int64: () => new Int64(),
  uint8: () => new Uint8(),
  uint16: () => new Uint16(),
  uint32: () => new Uint32(),
  uint64: () => new Uint64(),
  float32: () => new Float32(),
  float64: () => new Float64(),
};

function arrowType(type: FieldType): DataType {
  if (type.kind === 'number') return NUMBER[type.type]();
  if (type.kind === 'list') return new List(new ArrowField('item', arrowType(type.of), true));
  return type.kind === 'binary' ? new Binary() : new Utf8();
}

function dataOf(vector: Vector, type: FieldType): Data {
  const { length, valid } = vector;
  const base = {
    type: arrowType(type),
    length,
    nullCount: valid ? valid.reduce((sum, mark) => sum + (mark === 0 ? 1 : 0), 0) : 0,
    ...(valid && { nullBitmap: packedBits(valid) }),
  };
  if (vector.kind === 'number') {
    const data = vector.type === 'bool' ? packedBits(vector.values as Uint8Array) : vector.values;
    return makeData({ ...base, data } as never);
  }
  if (vector.kind === 'none') throw new Error('a column of a file has a type');
  const { buffer, byteOffset } = vector.offsets;
  const valueOffsets = new Int32Array(buffer, byteOffset, length + 1);
  if (vector.kind === 'list' && type.kind === 'list')
    return makeData({ ...base, valueOffsets, child: dataOf(vector.child, type.of) } as never);
  return makeData({ ...base, valueOffsets, data: (vector as { data: Uint8Array }).data } as never);
}
