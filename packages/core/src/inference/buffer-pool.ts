/**
 * Large ArrayBuffers that are used again: zeroing a fresh megabyte for every batch costs more than filling it. Sizes
 * are powers of two. What is acquired is released by its owner; a buffer that was transferred to a thread comes back
 * as a new object over the same memory, and is released as that.
 */

const SMALLEST_BYTES = 4 * 1024;

export interface BufferPoolStats {
  freeBytes: number;
  /** Acquired and not released: flat when idle, or something leaks. */
  heldBytes: number;
}

export class BufferPool {
  readonly #limitBytes: number;
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #heldBytes = 0;

  /** @param limitBytes most bytes that lie free; more are left to the garbage collector */
  constructor(limitBytes = 64 * 1024 * 1024) {
    this.#limitBytes = limitBytes;
  }

  /** A buffer of at least `bytes`, with whatever its last user left in it. */
  acquire(bytes: number): ArrayBuffer {
    const size = classOf(bytes);
    this.#heldBytes += size;
    const free = this.#free.get(size)?.pop();
    if (!free) return new ArrayBuffer(size);
    this.#freeBytes -= size;
    return free;
  }

  /** Gives a buffer back. A detached one is refused: its memory is elsewhere, and `lost` says so. */
  release(buffer: ArrayBuffer): void {
    const size = buffer.byteLength;
    if (size === 0 || size !== classOf(size)) throw new Error(`not a buffer of this pool: ${size} bytes`);
    const list = this.#free.get(size) ?? [];
    if (list.includes(buffer)) throw new Error('a buffer was released twice');
    this.#heldBytes -= size;
    if (this.#freeBytes + size > this.#limitBytes) return;
    this.#free.set(size, list);
    list.push(buffer);
    this.#freeBytes += size;
  }

  /** Forgets an acquired buffer that will not come back, such as one that went down with its thread. */
  lost(bytes: number): void {
    this.#heldBytes -= classOf(bytes);
  }

  get stats(): BufferPoolStats {
    return { freeBytes: this.#freeBytes, heldBytes: this.#heldBytes };
  }
}

function classOf(bytes: number): number {
  return bytes <= SMALLEST_BYTES ? SMALLEST_BYTES : 2 ** Math.ceil(Math.log2(bytes));
}
