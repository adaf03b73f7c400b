/**
 * Where the record batches of an Arrow file lie. The file format says it in its footer; of the stream format the messages
 * are passed over one by one, without their bodies. Kept are a few numbers a batch, whatever the file holds.
 */
import type { FileHandle } from 'node:fs/promises';
import { RemudaError } from '../../../../errors.js';
import { type BatchHeader, type DataType, Footer, Message, type Schema } from './arrow-layout.js';

export interface BatchPlace {
  firstRow: number;
  rows: number;
  /** Of the message. */
  offset: number;
}

export interface DictionaryPlace {
  id: number;
  /** It adds to what went before. */
  isDelta: boolean;
  offset: number;
}

export interface ArrowIndex {
  schema: Schema;
  /** Types of the values of dictionaries, by their id. */
  dictionaryTypes: ReadonlyMap<number, DataType>;
  batches: BatchPlace[];
  dictionaries: DictionaryPlace[];
  rows: number;
  /** Dictionaries of a file hold for all of its batches, wherever they lie. */
  isFile: boolean;
}

export interface FoundMessage {
  message: Message;
  /** Of its body. */
  body: number;
  bodyLength: number;
}

const MAGIC = 'ARROW1';
const FEATHER_1 = 'FEA1';
const CONTINUATION = 0xffffffff;
/** Larger than any schema: what says that it is has been damaged. */
const MOST_METADATA = 256 * 1024 * 1024;

/** @throws RemudaError invalid_file with the byte */
export async function indexArrow(path: string, file: FileHandle): Promise<ArrowIndex> {
  const { size } = await file.stat();
  if (size === 0) throw damaged(path, 0, 'it is empty', 'Write it again');
  const head = (await bytesAt(file, 0, Math.min(8, size))).toString('latin1');
  if (head.startsWith(FEATHER_1)) {
    throw damaged(
      path,
      0,
      'it is of Feather version 1, which is no Arrow IPC',
      'Write it as Feather version 2',
    );
  }
  const index = head.startsWith(MAGIC) ? indexFile : indexStream;
  return guarded(path, 0, 'its description cannot be read', () => index(path, file, size));
}

async function indexFile(path: string, file: FileHandle, size: number): Promise<ArrowIndex> {
  const tail = await bytesAt(file, Math.max(size - 10, 0), Math.min(10, size));
  if (size < 20 || tail.toString('latin1', 4) !== MAGIC) {
    throw damaged(
      path,
      size,
      `its footer is cut off: the file ends at byte ${size}, and "${MAGIC}" should be its last six bytes`,
    );
  }
  const length = tail.readInt32LE(0);
  const at = size - 10 - length;
  if (length <= 0 || at < 8) {
    throw damaged(
      path,
      size - 10,
      `its footer is said to be ${length} bytes long, and the whole file has ${size}`,
    );
  }
  const footer = await guarded(path, at, 'its footer cannot be read', async () =>
    Footer.decode(await bytesAt(file, at, length)),
  );
  const index = emptyIndex(footer.schema, true);
  for (const { offset } of footer.dictionaryBatches()) {
    const { message } = await messageAt(path, file, offset, size);
    addDictionary(index, message, offset);
  }
  for (const { offset } of footer.recordBatches()) {
    const { message } = await messageAt(path, file, offset, size);
    addBatch(path, index, message, offset);
  }
  return index;
}

async function indexStream(path: string, file: FileHandle, size: number): Promise<ArrowIndex> {
  let index: ArrowIndex | undefined;
  for (let offset = 0; offset < size; ) {
    const found = await nextMessage(path, file, offset, size, index === undefined);
    if (found === null) break;
    const { message, body, bodyLength } = found;
    if (message.isSchema()) index = emptyIndex(message.header() as Schema, false);
    else if (!index) throw damaged(path, offset, 'it does not begin with a schema', 'Name its format');
    else if (message.isDictionaryBatch()) addDictionary(index, message, offset);
    else if (message.isRecordBatch()) addBatch(path, index, message, offset);
    offset = body + bodyLength;
  }
  if (!index) throw damaged(path, 0, 'it holds no schema');
  return index;
}

function emptyIndex(schema: Schema, isFile: boolean): ArrowIndex {
  const dictionaryTypes = schema.dictionaries as ReadonlyMap<number, DataType>;
  return { schema, dictionaryTypes, batches: [], dictionaries: [], rows: 0, isFile };
}

function addBatch(path: string, index: ArrowIndex, message: Message, offset: number): void {
  if (!message.isRecordBatch()) throw damaged(path, offset, 'there is no record batch where one should be');
  const rows = (message.header() as BatchHeader).length;
  if (rows > 0) index.batches.push({ firstRow: index.rows, rows, offset });
  index.rows += rows;
}

function addDictionary(index: ArrowIndex, message: Message, offset: number): void {
  if (!message.isDictionaryBatch()) return;
  const { id, isDelta } = message.header();
  index.dictionaries.push({ id: Number(id), isDelta, offset });
}

/** The message at an offset, whose body lies in the file as a whole. @throws RemudaError invalid_file */
export async function messageAt(
  path: string,
  file: FileHandle,
  offset: number,
  size: number,
): Promise<FoundMessage> {
  const found = await nextMessage(path, file, offset, size, false);
  if (!found) throw damaged(path, offset, 'there is no message where the footer says there is one');
  return found;
}

/** null: the stream says that it ends. @param first whether this is the beginning of a stream, which may be no Arrow at all */
async function nextMessage(
  path: string,
  file: FileHandle,
  offset: number,
  size: number,
  first: boolean,
): Promise<FoundMessage | null> {
  const prefix = await bytesAt(file, offset, 8);
  if (prefix.length < 8 && !(prefix.length === 4 && prefix.readUInt32LE(0) === 0)) {
    throw damaged(path, offset, `it is cut off in the middle of a message, at byte ${size}`);
  }
  // Before version 0.15 no mark stood before the length.
  const marked = prefix.readUInt32LE(0) === CONTINUATION;
  const length = marked ? prefix.readInt32LE(4) : prefix.readInt32LE(0);
  if (length === 0) return null;
  const at = offset + (marked ? 8 : 4);
  if (first && !marked && (length < 0 || at + length > size)) {
    const shown = JSON.stringify(prefix.toString('latin1'));
    throw damaged(path, 0, `it is no Arrow IPC: it begins with ${shown}`, 'Name its format');
  }
  if (length < 0 || length > MOST_METADATA || at + length > size) {
    throw damaged(
      path,
      offset,
      `the message at byte ${offset} is said to have ${length} bytes of metadata, and the file ends at byte ${size}`,
    );
  }
  const message = await guarded(path, at, `the message at byte ${offset} cannot be read`, async () =>
    Message.decode(await bytesAt(file, at, length)),
  );
  const body = at + length;
  const bodyLength = Number(message.bodyLength);
  if (!(bodyLength >= 0) || body + bodyLength > size) {
    throw damaged(
      path,
      body,
      `it is cut off: the message at byte ${offset} has a body up to byte ${body + bodyLength}, and the file ends at byte ${size}`,
    );
  }
  return { message, body, bodyLength };
}

/** Exactly these bytes, or those up to the end of the file. */
export async function bytesAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, offset + filled);
    if (bytesRead === 0) return buffer.subarray(0, filled);
    filled += bytesRead;
  }
  return buffer;
}

async function guarded<T>(path: string, byte: number, what: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    throw asDamage(path, byte, what, cause);
  }
}

/** What the format does not allow shows anywhere in the reading of it. Errors with a code, and those of the system, stay. */
export function asDamage(path: string, byte: number, what: string, cause: unknown): unknown {
  if (cause instanceof RemudaError || (cause instanceof Error && 'syscall' in cause)) return cause;
  return damaged(path, byte, `${what}: ${cause instanceof Error ? cause.message : String(cause)}`);
}

export function damaged(
  path: string,
  byte: number,
  what: string,
  advice = 'Fetch or write it again',
): RemudaError {
  return new RemudaError('invalid_file', `${path}: ${what}. ${advice}.`, { path, byte });
}
