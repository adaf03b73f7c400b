/** What outputs of lines share: parts that are the output as they are, behind a head, each compressed by itself. */
import type { BulkCompression } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import type { ByteSink, EncodedPart, OutputEncoder, PartList } from './bulk-output.js';
import { compress } from './compress.js';

export interface TextFormat {
  /** The line before all others, with its end; "": none. */
  header: string;
  lines(result: ChunkResult): Uint8Array;
}

export class TextEncoder implements OutputEncoder {
  readonly head: Uint8Array;
  readonly #format: TextFormat;
  readonly #compression: BulkCompression;

  private constructor(format: TextFormat, compression: BulkCompression, head: Uint8Array) {
    this.#format = format;
    this.#compression = compression;
    this.head = head;
  }

  static async of(format: TextFormat, compression: BulkCompression): Promise<TextEncoder> {
    const header = Buffer.from(format.header, 'utf8');
    // An empty file is no gzip: without rows there is a stream of nothing.
    return new TextEncoder(format, compression, await compress(header, compression));
  }

  async encode(result: ChunkResult): Promise<EncodedPart> {
    const lines = this.#format.lines(result);
    if (lines.length === 0) return { bytes: lines };
    return { bytes: await compress(lines, this.#compression) };
  }

  async join(parts: PartList, sink: ByteSink, progress?: (rows: number) => void): Promise<void> {
    let rows = 0;
    if (this.head.length > 0) await sink.write(this.head);
    for await (const part of parts) {
      if (part.length > 0) await sink.write(await part.read());
      rows += part.rows;
      progress?.(rows);
    }
  }
}
