/**
 * Follows the append-only file of a running Redis and hands what is written to the witness. Redis must not rewrite the
 * file (auto-aof-rewrite-percentage 0). When Redis has been started again: restarted(), since it may have cut the end off.
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { AofParser } from './aof-parser.js';
import type { Witness } from './witness.js';

const EVERY_MS = 20;
const PIECE_BYTES = 4 * 2 ** 20;

export class AofTail {
  readonly #dataDir: string;
  readonly #witness: Witness;
  readonly #onError: (error: Error) => void;
  readonly #parser = new AofParser();
  #timer: NodeJS.Timeout | undefined;

  constructor(dataDir: string, witness: Witness, onError: (error: Error) => void) {
    this.#dataDir = dataDir;
    this.#witness = witness;
    this.#onError = onError;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      try {
        this.read();
      } catch (error) {
        this.stop();
        this.#onError(error as Error);
      }
    }, EVERY_MS);
  }

  /** Reads what is there now. */
  read(): void {
    const path = aofPath(this.#dataDir);
    if (path === undefined) return;
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      while (this.#parser.wanted < size) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - this.#parser.wanted));
        const read = readSync(file, piece, 0, piece.length, this.#parser.wanted);
        if (read === 0) break;
        this.#witness.see(this.#parser.push(piece.subarray(0, read)));
      }
    } finally {
      closeSync(file);
    }
  }

  /** Call it before the new server takes writes. */
  restarted(): void {
    this.#parser.rewind();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The file that is written to: Redis 7 keeps it in a folder, beside the base that it began with. */
function aofPath(dataDir: string): string | undefined {
  const folder = join(dataDir, 'appendonlydir');
  if (!existsSync(folder)) {
    const single = join(dataDir, 'appendonly.aof');
    return existsSync(single) ? single : undefined;
  }
  const pieces = readdirSync(folder).filter((name) => name.endsWith('.incr.aof'));
  if (pieces.length > 1) throw new Error(`Redis has rewritten its append-only file: ${pieces.join(', ')}`);
  return pieces[0] && join(folder, pieces[0]);
}
