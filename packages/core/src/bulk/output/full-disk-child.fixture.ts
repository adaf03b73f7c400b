/** A process that may write files of a few kilobytes only: appends parts until it cannot, and tells what is left. */
import { RemudaError } from '../../errors.js';
import { DataFile } from './data-file.js';
import { FileSink } from './file-sink.js';

const [path = ''] = process.argv.slice(2);

async function codeOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return 'done';
  } catch (error) {
    return error instanceof RemudaError ? error.code : String(error);
  }
}

const file = await DataFile.open(path);
const appended = await codeOf(async () => {
  for (let i = 0; i < 1_000; i++) await file.append(Buffer.alloc(700, i));
});
const { size } = file;
// A smaller one may still fit, and the file goes on where it was.
const again = await codeOf(() => file.append(Buffer.alloc(1, 255)));

const sink = await FileSink.open(`${path}.partial`);
const written = await codeOf(async () => {
  for (let i = 0; i < 1_000; i++) await sink.write(Buffer.alloc(70_000));
  await sink.close();
});
await sink.discard().catch(() => {});
process.stdout.write(JSON.stringify({ appended, size, again, written }));
