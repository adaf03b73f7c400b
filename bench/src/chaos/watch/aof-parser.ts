/**
 * Reads the append-only file of Redis: a list of commands, each an array of bulk strings. What belongs together
 * (MULTI … EXEC, the writes of one script) is given as a whole or not at all, as Redis itself keeps it after a crash;
 * `committed` is how far the file was read in whole pieces.
 */

/** The name of the command first. */
export type AofCommand = readonly Buffer[];

const [STAR, HASH, LF] = [0x2a, 0x23, 0x0a];

export class AofParser {
  #bytes: Buffer = Buffer.alloc(0);
  #committed: number;
  /** Bytes of `#bytes` behind `committed` that are parsed: commands of an open MULTI. */
  #parsed = 0;
  #open: AofCommand[] | undefined;

  constructor(committed = 0) {
    this.#committed = committed;
  }

  /** Offset in the file behind the last whole piece. */
  get committed(): number {
    return this.#committed;
  }

  /** Offset of the bytes to be given next. */
  get wanted(): number {
    return this.#committed + this.#bytes.length;
  }

  /** Forgets what was not whole: Redis cuts that off when it starts again. */
  rewind(): void {
    this.#bytes = Buffer.alloc(0);
    this.#parsed = 0;
    this.#open = undefined;
  }

  /** The commands that are complete with these bytes. @throws Error where the file is not what it should be */
  push(bytes: Buffer): AofCommand[] {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    const whole: AofCommand[] = [];
    for (let next = this.#readOne(); next !== undefined; next = this.#readOne()) {
      if (next.length > 0) this.#collect(next, whole);
      if (this.#open === undefined) this.#commit();
    }
    return whole;
  }

  #collect(command: AofCommand, whole: AofCommand[]): void {
    const name = (command[0] as Buffer).toString('latin1').toUpperCase();
    if (name === 'MULTI') this.#open = [];
    else if (name === 'EXEC') {
      whole.push(...(this.#open ?? []));
      this.#open = undefined;
    } else (this.#open ?? whole).push(command);
  }

  #commit(): void {
    this.#bytes = this.#bytes.subarray(this.#parsed);
    this.#committed += this.#parsed;
    this.#parsed = 0;
  }

  /** One command, an empty one for an annotation; undefined: its end is not there yet. */
  #readOne(): AofCommand | undefined {
    const kind = this.#bytes[this.#parsed];
    if (kind === undefined) return undefined;
    const line = this.#line(this.#parsed);
    if (line === undefined) return undefined;
    if (kind === HASH) {
      this.#parsed = line.end;
      return [];
    }
    if (kind !== STAR)
      throw new Error(`no command at byte ${this.#committed + this.#parsed} of the append-only file`);
    return this.#readArguments(line.number, line.end);
  }

  #readArguments(count: number, from: number): AofCommand | undefined {
    const command: Buffer[] = [];
    let at = from;
    for (let i = 0; i < count; i++) {
      const line = this.#line(at);
      if (line === undefined || this.#bytes.length < line.end + line.number + 2) return undefined;
      command.push(this.#bytes.subarray(line.end, line.end + line.number));
      at = line.end + line.number + 2;
    }
    this.#parsed = at;
    return command;
  }

  /** The number behind the first byte of a line, and where the next line begins. */
  #line(from: number): { number: number; end: number } | undefined {
    const at = this.#bytes.indexOf(LF, from);
    if (at < 0) return undefined;
    return { number: Number(this.#bytes.toString('latin1', from + 1, at - 1)), end: at + 1 };
  }
}
