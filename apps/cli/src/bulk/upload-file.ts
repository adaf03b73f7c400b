/** Sends an input to /v1/files as a stream, and says how far it is. */
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { BulkFile } from '@remuda/schemas';
import { megabytes, percent } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import type { ApiBulk } from './api-bulk.js';

export interface Upload {
  filename: string;
  content: AsyncIterable<Buffer | string>;
  /** undefined: not known before its end. */
  bytes: number | undefined;
}

export function fileUpload(path: string, bytes: number): Upload {
  return { filename: basename(path), content: createReadStream(path, { highWaterMark: 1 << 20 }), bytes };
}

/** @param keptS as ApiBulk.upload() has it */
export function uploadFile(
  api: ApiBulk,
  { filename, content, bytes }: Upload,
  terminal: Terminal,
  keptS?: number,
): Promise<BulkFile> {
  return withProgress(terminal, `sending ${filename}`, (say) => {
    async function* counted(): AsyncGenerator<Buffer | string> {
      let sent = 0;
      for await (const part of content) {
        sent += part.length;
        say(bytes ? `${megabytes(sent)} of ${megabytes(bytes)}, ${percent(sent / bytes)}` : megabytes(sent));
        yield part;
      }
    }
    return api.upload(filename, counted(), keptS);
  });
}
