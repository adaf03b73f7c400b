/** Standard input as a file, whole or not at all: only then can a job that reads it go on after a crash. */
import { createWriteStream } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** @param onBytes told of the bytes that are here */
export async function spoolInput(
  input: AsyncIterable<Buffer | string>,
  path: string,
  { onBytes, stop }: { onBytes(bytes: number): void; stop?: AbortSignal },
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  async function* counted(): AsyncGenerator<Buffer | string> {
    let bytes = 0;
    for await (const part of input) {
      bytes += part.length;
      onBytes(bytes);
      yield part;
    }
  }
  await pipeline(counted, createWriteStream(`${path}.new`), { signal: stop });
  const handle = await open(`${path}.new`, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.new`, path);
}
