/** A process that may write files of a few kilobytes only: writes an output until it cannot, and tells why. */
import { RemudaError } from '../../errors.js';
import { FileSink } from './file-sink.js';

const sink = await FileSink.open(process.argv[2] as string);
try {
  for (let i = 0; i < 1_000; i++) await sink.write(Buffer.alloc(70_000));
  await sink.close();
} catch (error) {
  process.stdout.write(error instanceof RemudaError ? error.code : String(error));
}
await sink.discard().catch(() => {});
