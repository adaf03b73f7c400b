/** Text that grows line by line, turned into bytes in pieces: a string cannot be longer than half a gigabyte. */
const PIECE = 2 ** 20;

export class TextBuffer {
  readonly #pieces: Buffer[] = [];
  #text = '';

  add(line: string): void {
    this.#text += line;
    if (this.#text.length >= PIECE) this.#flush();
  }

  bytes(): Buffer {
    this.#flush();
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces);
  }

  #flush(): void {
    if (this.#text === '') return;
    this.#pieces.push(Buffer.from(this.#text, 'utf8'));
    this.#text = '';
  }
}
