/**
 * Text that grows line by line, turned into bytes before it gets long: a string cannot be longer than half a gigabyte, and
 * short ones are gone before they cost memory.
 */
const STRING_LENGTH = 2 ** 15;

export class TextBuffer {
  #bytes = Buffer.allocUnsafeSlow(2 ** 16);
  #used = 0;
  #text = '';

  add(line: string): void {
    this.#text += line;
    if (this.#text.length >= STRING_LENGTH) this.#flush();
  }

  bytes(): Buffer {
    this.#flush();
    return this.#bytes.subarray(0, this.#used);
  }

  #flush(): void {
    // Most bytes that UTF-8 takes for a unit of a string.
    const most = this.#used + this.#text.length * 3;
    if (most > this.#bytes.length) {
      const longer = Buffer.allocUnsafeSlow(most * 2);
      this.#bytes.copy(longer, 0, 0, this.#used);
      this.#bytes = longer;
    }
    this.#used += this.#bytes.write(this.#text, this.#used, 'utf8');
    this.#text = '';
  }
}
