/**
 * The one place that knows the Arrow library: what a message says, and how the buffers of a record batch belong to its
 * columns. Buffers are read here by offset (arrow-file.ts), so that neither a batch as large as the file nor columns that
 * nobody wants come into memory.
 */
import {
  CompressionType,
  type DataType,
  DateUnit,
  type Field,
  Message,
  Precision,
  type Schema,
  TimeUnit,
  Type,
} from 'apache-arrow';
import { Footer } from 'apache-arrow/ipc/metadata/file';
import type { RecordBatch } from 'apache-arrow/ipc/metadata/message';

export type { DataType, Field, RecordBatch as BatchHeader, Schema };
export { CompressionType, DateUnit, Footer, Message, Precision, TimeUnit, Type };

/** Where the description of a column begins among those of its batch. */
export interface Place {
  node: number;
  buffer: number;
  /** Columns of views before: each has a count of its own. */
  view: number;
}

/** The place behind a column and all that is in it. */
export function placeAfter(type: DataType, place: Place, variadic: readonly number[]): Place {
  const own = ownBuffers(type, place, variadic);
  let next: Place = {
    node: place.node + 1,
    buffer: place.buffer + own.buffers,
    view: place.view + own.views,
  };
  for (const child of childrenOf(type)) next = placeAfter(child.type, next, variadic);
  return next;
}

/** Of a dictionary the keys are in the batch, and the values are not. */
export function childrenOf(type: DataType): readonly Field[] {
  if (type.typeId === Type.Dictionary) return [];
  return (type.children as Field[] | null | undefined) ?? [];
}

function ownBuffers(
  type: DataType,
  { view }: Place,
  variadic: readonly number[],
): { buffers: number; views: number } {
  switch (type.typeId) {
    case Type.Null:
      return { buffers: 0, views: 0 };
    case Type.Struct:
    case Type.FixedSizeList:
      return { buffers: 1, views: 0 };
    case Type.Utf8:
    case Type.Binary:
    case Type.LargeUtf8:
    case Type.LargeBinary:
      return { buffers: 3, views: 0 };
    case Type.Utf8View:
    case Type.BinaryView:
      return { buffers: 2 + (variadic[view] ?? 0), views: 1 };
    case Type.Union:
      return { buffers: (type as unknown as { mode: number }).mode === 1 ? 2 : 1, views: 0 };
    default:
      return { buffers: 2, views: 0 };
  }
}

/** "float32", "list<float32>", "timestamp"; what is unknown as the library calls it. */
export function typeText(type: DataType): string {
  const { bitWidth, isSigned, precision } = type as {
    bitWidth?: number;
    isSigned?: boolean;
    precision?: number;
  };
  switch (type.typeId) {
    case Type.Int:
      return `${isSigned ? '' : 'u'}int${bitWidth}`;
    case Type.Float:
      return precision === Precision.HALF
        ? 'float16'
        : precision === Precision.SINGLE
          ? 'float32'
          : 'float64';
    case Type.Bool:
      return 'bool';
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Utf8View:
      return 'string';
    case Type.Binary:
    case Type.LargeBinary:
    case Type.BinaryView:
    case Type.FixedSizeBinary:
      return 'bytes';
    case Type.List:
    case Type.LargeList:
    case Type.FixedSizeList:
      return `list<${typeText((childrenOf(type)[0] as Field).type)}>`;
    case Type.Dictionary:
      return typeText((type as unknown as { dictionary: DataType }).dictionary);
    case Type.Decimal:
      return `decimal(${precision},${(type as unknown as { scale: number }).scale})`;
    case Type.Date:
      return 'date';
    case Type.Time:
      return 'time';
    case Type.Timestamp:
      return (type as unknown as { timezone?: string }).timezone ? 'timestamp with time zone' : 'timestamp';
    case Type.Struct:
      return 'struct';
    case Type.Map:
      return 'map';
    case Type.Null:
      return 'null';
    default:
      return String(type).toLowerCase();
  }
}
