/**
 * Where a command writes: answers to standard output, everything about its way there to standard error. Colour and
 * width belong to the stream, so a piped answer is plain and a terminal's is not.
 */
import pc from 'picocolors';

export type Colours = ReturnType<typeof pc.createColors>;

export interface Terminal {
  /** A line of the answer. */
  out(line: string): void;
  /** A line about the way: progress, notices, errors. */
  note(line: string): void;
  /** Rewrites the last line of standard error; only on a terminal. */
  status: ((text: string) => void) | undefined;
  /** Of standard output. */
  colours: Colours;
  noteColours: Colours;
  /** Columns that a table may take. */
  width: number;
}

/** Wider tables are harder to read than shortened cells; also the width where there is no terminal. */
const MOST_COLUMNS = 110;

export function processTerminal(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  wantsColour: (stream: NodeJS.WriteStream) => boolean,
): Terminal {
  // A reader that has gone (head, a closed terminal) must not cut off the orderly stop of `remuda up`.
  for (const stream of [stdout, stderr]) stream.on('error', () => {});
  return {
    out: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    status: stderr.isTTY ? (text) => void stderr.write(`\r\x1b[K${text}`) : undefined,
    colours: pc.createColors(wantsColour(stdout)),
    noteColours: pc.createColors(wantsColour(stderr)),
    width: Math.min(stdout.columns || MOST_COLUMNS, MOST_COLUMNS),
  };
}
