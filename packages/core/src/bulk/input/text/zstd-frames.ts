/** Where frames of zstd begin and end (RFC 8878), told by their headers and those of their blocks alone. */

/** [from, to) belongs to a frame, is the end of one, or stands outside of any: its magic number too. */
export type FrameStep =
  | { kind: 'part'; to: number }
  | { kind: 'end'; to: number; checksum: number | null }
  | { kind: 'skipped'; to: number };

export const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const MAGIC = ZSTD_MAGIC.readUInt32LE();
const SKIPPABLE = 0x184d2a50;
const RLE = 1;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const SIZE_BYTES = [0, 2, 4, 8] as const;

type State = 'magic' | 'descriptor' | 'header' | 'block' | 'content' | 'checksum' | 'skip-size' | 'skip';

export class ZstdFrames {
  #state: State = 'magic';
  /** Of the field that is being read: what has come of it, and how much it is. */
  #field: number[] = [];
  #wanted = 4;
  #hasChecksum = false;
  #isLastBlock = false;

  /** A frame has begun and not ended. */
  get isInside(): boolean {
    return this.#state !== 'magic' || this.#field.length > 0;
  }

  /** The next stretch of the bytes that is of one kind. @throws Error where no frame begins that should */
  next(bytes: Uint8Array, from: number): FrameStep {
    const outside = this.#state === 'magic' || this.#state === 'skip-size' || this.#state === 'skip';
    for (let at = from; ; ) {
      at = this.#advance(bytes, at);
      if (this.#wanted > 0) return { kind: outside ? 'skipped' : 'part', to: at };
      const checksum = this.#state === 'checksum' ? this.#number() : null;
      const ended = this.#enter();
      if (outside) return { kind: 'skipped', to: at };
      if (ended) return { kind: 'end', to: at, checksum };
    }
  }

  /** Takes what is there of the field or stretch that is being read. */
  #advance(bytes: Uint8Array, from: number): number {
    const taken = Math.min(this.#wanted, bytes.length - from);
    if (this.#state !== 'content' && this.#state !== 'skip' && this.#state !== 'header')
      for (let at = from; at < from + taken; at += 1) this.#field.push(bytes[at] as number);
    this.#wanted -= taken;
    return from + taken;
  }

  #number(): number {
    return this.#field.reduce((sum, byte, i) => sum + byte * 2 ** (8 * i), 0);
  }

  /** What comes behind a field that has been read. True: the frame has ended. */
  #enter(): boolean {
    const value = this.#number();
    this.#field = [];
    switch (this.#state) {
      case 'magic':
        return this.#afterMagic(value);
      case 'descriptor':
        return this.#expect('header', headerBytes(value), (value >> 2) % 2 === 1);
      case 'header':
        return this.#expect('block', 3);
      case 'block':
        this.#isLastBlock = value % 2 === 1;
        return this.#expect('content', ((value >> 1) & 3) === RLE ? 1 : value >> 3);
      case 'content':
        if (!this.#isLastBlock) return this.#expect('block', 3);
        return this.#hasChecksum ? this.#expect('checksum', 4) : this.#end();
      case 'skip-size':
        return value === 0 ? this.#end() : this.#expect('skip', value);
      default:
        return this.#end();
    }
  }

  #afterMagic(magic: number): boolean {
    if (magic === MAGIC) return this.#expect('descriptor', 1);
    if (magic - (magic % 16) === SKIPPABLE) return this.#expect('skip-size', 4);
    throw new Error('something else than a frame stands where one should begin');
  }

  #expect(state: State, bytes: number, hasChecksum = this.#hasChecksum): boolean {
    this.#state = state;
    this.#wanted = bytes;
    this.#hasChecksum = hasChecksum;
    return false;
  }

  #end(): boolean {
    this.#expect('magic', 4);
    return true;
  }
}

/** Behind the descriptor: window, dictionary, size of the content. */
function headerBytes(descriptor: number): number {
  const isSingle = (descriptor >> 5) & 1;
  const size = SIZE_BYTES[(descriptor >> 6) as 0 | 1 | 2 | 3] || isSingle;
  return (isSingle ? 0 : 1) + DICTIONARY_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3] + size;
}
