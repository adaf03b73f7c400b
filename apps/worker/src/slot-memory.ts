/**
 * Memory of a version: what it has booked on its device, and what its loads were seen to take. Before its first load
 * the size of its file is all there is to go by.
 */
import { join } from 'node:path';
import type { ModelSource } from '@remuda/core/harness/harness';
import { estimateBytes } from './estimate-bytes.js';

export class SlotMemory {
  /** Bytes that it takes, or that its load is going to take. */
  booked = 0;
  /** Largest growth that was seen, by what was loaded. */
  #measured: { stamp: string; bytes: number } | undefined;

  isMeasured(stamp: string): boolean {
    return this.#measured?.stamp === stamp;
  }

  async needed(stamp: string, source: ModelSource): Promise<number> {
    const measured = this.#bytesOf(stamp);
    if (measured !== null) return measured;
    const file = join(source.folder, source.modelFile ?? source.config.model_path);
    return (await estimateBytes(file)) * source.config.instances;
  }

  /** The growth of a process that had freed memory before says too little: never less than what was expected. */
  measured(stamp: string, grown: number, needed: number): void {
    const bytes = Math.max(grown, needed, this.#bytesOf(stamp) ?? 0);
    this.#measured = { stamp, bytes };
    this.booked = bytes;
  }

  #bytesOf(stamp: string): number | null {
    return this.#measured?.stamp === stamp ? this.#measured.bytes : null;
  }
}
