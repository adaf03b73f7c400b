/**
 * An Arrow IPC file, of the file or the stream format. Only the buffers of wanted columns are read, and of those only the
 * rows that are asked for, so that memory grows with the chunk: not with the file, and not with its batches.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Column, ColumnInfo } from '../../../columns.js';
import { joinColumns } from '../../../join-columns.js';
import { placesOf, type RowFile, unsupportedType } from '../row-file.js';
import { canRead, readColumn, UnsupportedArrowType } from './arrow-columns.js';
import {
  type ArrowIndex,
  asDamage,
  type BatchPlace,
  type DictionaryPlace,
  indexArrow,
  messageAt,
} from './arrow-index.js';
import {
  type BatchHeader,
  type DataType,
  type Field,
  type Place,
  placeAfter,
  typeText,
} from './arrow-layout.js';
import { BatchBuffers } from './batch-buffers.js';

const FIRST: Place = { node: 0, buffer: 0, view: 0 };

export class ArrowFile implements RowFile {
  readonly columns: readonly ColumnInfo[];
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #size: number;
  readonly #index: ArrowIndex;
  /** The batch that was read last: the next chunk is most often of the same. */
  #batch: { place: BatchPlace; buffers: BatchBuffers } | null = null;
  /** Values of dictionaries, by the offset of the message that was the last to change them. */
  readonly #dictionaries = new Map<number, Column>();

  private constructor(path: string, file: FileHandle, size: number, index: ArrowIndex) {
    this.#path = path;
    this.#file = file;
    this.#size = size;
    this.#index = index;
    this.columns = uniqueNames(index.schema.fields);
  }

  /** @throws RemudaError invalid_file */
  static async open(path: string): Promise<ArrowFile> {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      return new ArrowFile(path, file, size, await indexArrow(path, file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get rows(): number {
    return this.#index.rows;
  }

  bytesBefore(row: number): number {
    const place = this.#index.batches[this.#batchOf(row)];
    if (!place) return 0;
    return Math.round(place.offset + (row - place.firstRow) * this.rowBytesAt(row));
  }

  rowBytesAt(row: number): number {
    const { batches } = this.#index;
    const at = this.#batchOf(row);
    const place = batches[at];
    if (!place) return 0;
    return ((batches[at + 1]?.offset ?? this.#size) - place.offset) / place.rows;
  }

  async read(from: number, to: number, names: readonly string[] | null): Promise<Column[]> {
    const wanted = placesOf(this.#path, this.columns, names).filter(
      (place) => names !== null || canRead((this.#index.schema.fields[place] as Field).type),
    );
    const { batches, rows } = this.#index;
    if (to > rows) throw new Error(`rows ${from} to ${to} of a file of ${rows}`);
    const blocks: Column[][] = [];
    for (let at = this.#batchOf(from); at < batches.length; at++) {
      const place = batches[at] as BatchPlace;
      if (place.firstRow >= to) break;
      const range = [Math.max(from - place.firstRow, 0), Math.min(to - place.firstRow, place.rows)] as const;
      blocks.push(await this.#readBatch(place, wanted, range));
    }
    return joinColumns(blocks);
  }

  async close(): Promise<void> {
    this.#batch = null;
    this.#dictionaries.clear();
    await this.#file.close();
  }

  async #readBatch(
    place: BatchPlace,
    wanted: readonly number[],
    range: readonly [number, number],
  ): Promise<Column[]> {
    const buffers = await this.#buffersOf(place);
    const { fields } = this.#index.schema;
    const places: Place[] = [];
    let next = FIRST;
    for (const { type } of fields) {
      places.push(next);
      next = placeAfter(type, next, buffers.header.variadicBufferCounts);
    }
    const dictionaries = (id: number): Promise<Column> => this.#dictionary(id, place.offset);
    return Promise.all(
      wanted.map(async (column) => {
        const { name, type } = this.columns[column] as ColumnInfo;
        try {
          const source = { buffers, dictionaries };
          return await readColumn(
            name,
            (fields[column] as Field).type,
            places[column] as Place,
            range,
            source,
          );
        } catch (error) {
          if (error instanceof UnsupportedArrowType) throw unsupportedType(this.#path, name, type ?? '');
          const what = `column "${name}" of the record batch at byte ${place.offset} cannot be read`;
          throw asDamage(this.#path, place.offset, what, error);
        }
      }),
    );
  }

  async #buffersOf(place: BatchPlace): Promise<BatchBuffers> {
    if (this.#batch?.place === place) return this.#batch.buffers;
    this.#batch = null;
    const found = await messageAt(this.#path, this.#file, place.offset, this.#size);
    const buffers = new BatchBuffers(this.#path, this.#file, found.message.header() as BatchHeader, found);
    this.#batch = { place, buffers };
    return buffers;
  }

  /** The values of a dictionary as they are for the batch at an offset. */
  async #dictionary(id: number, offset: number): Promise<Column> {
    const { dictionaries, isFile } = this.#index;
    const before = dictionaries.filter((one) => one.id === id && (isFile || one.offset < offset));
    const whole = before.findLastIndex(({ isDelta }) => !isDelta);
    const parts = before.slice(Math.max(whole, 0));
    const last = parts.at(-1);
    if (!last) throw new UnsupportedArrowType(`dictionary ${id}, whose values are missing`);
    const known = this.#dictionaries.get(last.offset);
    if (known) return known;
    const blocks = await Promise.all(parts.map(async (part) => [await this.#readDictionary(part)]));
    const [column] = joinColumns(blocks) as [Column];
    this.#dictionaries.set(last.offset, column);
    return column;
  }

  async #readDictionary({ id, offset }: DictionaryPlace): Promise<Column> {
    const found = await messageAt(this.#path, this.#file, offset, this.#size);
    const { data } = found.message.header() as unknown as { data: BatchHeader };
    const buffers = new BatchBuffers(this.#path, this.#file, data, found);
    const type = this.#index.dictionaryTypes.get(id) as DataType;
    const dictionaries = (inner: number): Promise<Column> => this.#dictionary(inner, offset);
    return readColumn('values', type, FIRST, [0, data.length], { buffers, dictionaries });
  }

  #batchOf(row: number): number {
    const { batches } = this.#index;
    let low = 0;
    let high = Math.max(batches.length - 1, 0);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((batches[middle] as BatchPlace).firstRow <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** A name that was there before gets a number behind it. */
function uniqueNames(fields: readonly Field[]): ColumnInfo[] {
  const taken = new Set<string>();
  return fields.map((field) => {
    let name = field.name;
    for (let n = 1; taken.has(name); n++) name = `${field.name}_${n}`;
    taken.add(name);
    return { name, type: typeText(field.type) };
  });
}
