/**
 * Parquet: typed columns, tensors as lists, rows in groups of 128k. Pages are made straight from typed arrays; the
 * library writes their headers and levels, and the footer.
 */
import { ByteWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { writeRleBitPackedHybrid } from 'hyparquet-writer/src/encoding.js';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { ChunkResult } from '../chunk.js';
import type { ByteSink, EncodedPart, OutputEncoder, PartList } from './bulk-output.js';
import type { OutputLayout } from './output-layout.js';
import { type Levels, levelsOf } from './parquet-levels.js';
import { type FileMetaData, leafOf, parquetSchema } from './parquet-schema.js';
import { extremes, plainValues } from './parquet-values.js';
import type { Field } from './result-vectors.js';
import { columnarPart, type RowGroup, rowGroups, settledFields } from './row-groups.js';
import { snappy } from './snappy.js';
import { sizeOf, type Vector } from './vectors.js';

type GroupFacts = FileMetaData['row_groups'][number];
type ColumnChunk = GroupFacts['columns'][number];
type Statistics = NonNullable<ColumnChunk['meta_data']>['statistics'];

const MAGIC = Buffer.from('PAR1', 'latin1');
const GROUP = { rows: 131_072, bytes: 32 * 2 ** 20 };
/** Bytes of a page before compression, about. */
const PAGE_BYTES = 2 ** 20;

export class ParquetEncoder implements OutputEncoder {
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
    await sink.write(MAGIC);
    let offset = MAGIC.length;
    const groups: GroupFacts[] = [];
    for await (const group of rowGroups(parts, fields, GROUP, progress)) {
      const written = writeGroup(group, fields, offset);
      await sink.write(written.bytes);
      offset += written.bytes.length;
      groups.push(written.facts);
    }
    await sink.write(footer(fields, groups));
  }
}

function footer(fields: readonly Field[], groups: GroupFacts[]): Uint8Array {
  const writer = new ByteWriter();
  const rows = groups.reduce((sum, group) => sum + group.num_rows, 0n);
  const facts: Omit<FileMetaData, 'metadata_length'> = {
    version: 2,
    created_by: 'remuda',
    schema: parquetSchema(fields),
    num_rows: rows,
    row_groups: groups,
  };
  writeMetadata(writer, facts as FileMetaData);
  writer.appendBytes(MAGIC);
  return writer.getBytes();
}

/** @param offset of the group in the file */
function writeGroup(
  { rows, vectors }: RowGroup,
  fields: readonly Field[],
  offset: number,
): { bytes: Uint8Array; facts: GroupFacts } {
  const writer = new ByteWriter(2 ** 20);
  const columns = vectors.map((vector, i) => writeColumn(writer, vector, rows, fields[i] as Field, offset));
  const total = columns.reduce((sum, { meta_data }) => sum + (meta_data?.total_uncompressed_size ?? 0n), 0n);
  const bytes = writer.getBytes();
  const facts: GroupFacts = {
    columns,
    total_byte_size: total,
    num_rows: BigInt(rows),
    total_compressed_size: BigInt(bytes.length),
  };
  return { bytes, facts };
}

function writeColumn(
  writer: ByteWriter,
  vector: Vector,
  rows: number,
  field: Field,
  offset: number,
): ColumnChunk {
  const { path, element } = leafOf(field);
  const begin = writer.offset;
  const each = Math.max(1, Math.floor((rows * PAGE_BYTES) / Math.max(1, sizeOf(vector, 0, rows))));
  let values = 0;
  let missing = 0;
  let uncompressed = 0;
  for (let from = 0; from < rows; from += each) {
    const to = Math.min(rows, from + each);
    const page = writePage(writer, levelsOf(vector, from, to, field.required), to - from);
    values += page.values;
    missing += page.missing;
    uncompressed += page.uncompressed;
  }
  return {
    file_offset: BigInt(offset + begin),
    meta_data: {
      type: element.type as NonNullable<typeof element.type>,
      encodings: ['RLE', 'PLAIN'],
      path_in_schema: path,
      codec: 'SNAPPY',
      num_values: BigInt(values),
      total_uncompressed_size: BigInt(uncompressed),
      total_compressed_size: BigInt(writer.offset - begin),
      data_page_offset: BigInt(offset + begin),
      statistics: statisticsOf(vector, rows, missing),
    },
  };
}

/** Bounds of scalars only: nobody looks for a row by an element of its list. */
function statisticsOf(vector: Vector, rows: number, missing: number): Statistics {
  const bounds = extremes(vector, 0, rows);
  return {
    null_count: BigInt(missing),
    ...(bounds && { min_value: bounds.min, max_value: bounds.max }),
  };
}

function writePage(
  writer: ByteWriter,
  levels: Levels,
  rows: number,
): { values: number; missing: number; uncompressed: number } {
  const { definition, repetition, definitionMax, repetitionMax, missing, leaf, from, to } = levels;
  const marks = new ByteWriter();
  const repetitionBytes = repetition ? writeRleBitPackedHybrid(marks, repetition, bitsFor(repetitionMax)) : 0;
  const definitionBytes = definition ? writeRleBitPackedHybrid(marks, definition, bitsFor(definitionMax)) : 0;
  const plain = plainValues(leaf, from, to);
  const packed = snappy(plain);
  // Most scores are noise to a compressor: readers then need not undo it.
  const smaller = packed.length < plain.length;
  const body = smaller ? packed : plain;
  const values = definition?.length ?? rows;
  const headerBegin = writer.offset;
  writePageHeader(writer, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: marks.offset + plain.length,
    compressed_page_size: marks.offset + body.length,
    data_page_header_v2: {
      num_values: values,
      num_nulls: missing,
      num_rows: rows,
      encoding: 'PLAIN',
      definition_levels_byte_length: definitionBytes,
      repetition_levels_byte_length: repetitionBytes,
      is_compressed: smaller,
    },
  });
  const headerBytes = writer.offset - headerBegin;
  writer.appendBytes(marks.getBytes());
  writer.appendBytes(body);
  return { values, missing, uncompressed: headerBytes + marks.offset + plain.length };
}

function bitsFor(largest: number): number {
  return Math.ceil(Math.log2(largest + 1));
}
