/**
 * Collects log lines and passes them on in pieces of 8 KB, or what there is after 50 ms. Handing each line alone to
 * pino's stream costs as much as making the line.
 */

/** Takes text now and writes it soon; `flush` begins to write. */
export interface TextSink {
  write(text: string): unknown;
  flush(): void;
}

const PIECE_CHARACTERS = 8192;
const LONGEST_WAIT_MS = 50;

export class LineBuffer {
  readonly #sink: TextSink;
  #lines: string[] = [];
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: TextSink) {
    this.#sink = sink;
  }

  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= PIECE_CHARACTERS) this.flush();
    // Not a reason to stay alive: at exit handOver is called.
    else this.#timer ??= setTimeout(() => this.flush(), LONGEST_WAIT_MS).unref();
  }

  flush(): void {
    this.handOver();
    this.#sink.flush();
  }

  /** Gives the sink what is left and does not begin to write: for the exit, when the sink writes by itself. */
  handOver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#lines.length === 0) return;
    this.#sink.write(this.#lines.join(''));
    this.#lines = [];
    this.#characters = 0;
  }
}
