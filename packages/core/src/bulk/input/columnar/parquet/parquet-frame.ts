/** The outermost bytes of a Parquet file, looked at before DuckDB does: a file that was cut off is told as that. */
import { open } from 'node:fs/promises';
import { RemudaError } from '../../../../errors.js';

const MAGIC = 'PAR1';
const ENCRYPTED = 'PARE';
/** Magic in front; length of the footer and magic at the end. */
const LEAST = 12;

/** @throws RemudaError invalid_file */
export async function checkParquetFrame(path: string): Promise<void> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const head = Buffer.alloc(4);
    await file.read(head, 0, 4, 0);
    const tail = Buffer.alloc(8);
    await file.read(tail, 0, 8, Math.max(size - 8, 0));
    checkMagic(path, size, head.toString('latin1'), tail.toString('latin1', 4));
    const footer = tail.readUInt32LE(0);
    if (footer + LEAST > size) {
      throw damaged(
        path,
        size - 8,
        `its footer is said to be ${footer} bytes long, and the whole file has ${size}`,
      );
    }
  } finally {
    await file.close();
  }
}

function checkMagic(path: string, size: number, head: string, tail: string): void {
  if (head === ENCRYPTED || tail === ENCRYPTED) {
    throw damaged(path, 0, 'it is encrypted', 'Decrypt it first');
  }
  if (size === 0) throw damaged(path, 0, 'it is empty', 'Write it again');
  if (head !== MAGIC) {
    const found = JSON.stringify(head.slice(0, size));
    throw damaged(path, 0, `it is no Parquet file: it begins with ${found}, not "PAR1"`, 'Name its format');
  }
  if (size < LEAST || tail !== MAGIC) {
    throw damaged(
      path,
      size,
      `its footer is cut off: the file ends at byte ${size}, and "PAR1" should be its last four bytes`,
    );
  }
}

/** @param advice what to do */
export function damaged(
  path: string,
  byte: number | null,
  what: string,
  advice = 'Fetch or write it again',
): RemudaError {
  const at = byte === null ? {} : { byte };
  return new RemudaError('invalid_file', `${path}: ${what}. ${advice}.`, { path, ...at });
}
