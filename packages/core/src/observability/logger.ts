/**
 * Logs as JSON lines: time (ISO), level as text, service, and the fields of the event. The only file that knows pino;
 * everybody else takes a Logger. Names of fields that point at something: trace_id, request_id, batch_id (one of
 * them), trace_ids, request_ids (all members of a batch); an error goes into `err`.
 */
import { pino, stdSerializers } from 'pino';
import { LineBuffer } from './line-buffer.js';
import { prettyLine } from './pretty-line.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;

type Log = (fields: LogFields, message: string) => void;

export interface Logger {
  debug: Log;
  info: Log;
  warn: Log;
  error: Log;
  /** A logger that puts these fields on each of its lines. */
  child(fields: LogFields): Logger;
  /** Whether lines of a level are written: ask before collecting fields that cost something. */
  isLevelEnabled(level: LogLevel): boolean;
}

/** Where lines go: each call has one line, with its end. */
export interface LogDestination {
  write(line: string): void;
}

export interface LoggerOptions {
  /** Which service logs: the field `service`. */
  name: string;
  /** Lowest level that is written. `warn` turns the life events of requests off (see events.ts). */
  level: LogLevel | 'silent';
  /** One short line for people in place of JSON. */
  pretty?: boolean;
  /** Default: standard output. */
  destination?: LogDestination;
}

export function createLogger({ name, level, pretty = false, destination }: LoggerOptions): Logger {
  const lines = destination ?? standardOutput();
  return pino(
    {
      level,
      base: { service: name, pid: process.pid },
      timestamp: isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error: Error) => withoutArguments(stdSerializers.errWithCause(error)) },
    },
    pretty ? { write: (line: string) => lines.write(prettyLine(line)) } : lines,
  );
}

/**
 * An error of Redis carries its command with all arguments: the password of AUTH, inputs of requests. The name of the
 * command says enough.
 */
function withoutArguments<Serialized>(error: Serialized): Serialized {
  if (typeof error !== 'object' || error === null) return error;
  const { command, cause, aggregateErrors } = error as Record<string, unknown>;
  const { name } = (command ?? {}) as { name?: unknown };
  if (command !== undefined) Object.assign(error, { command: name });
  withoutArguments(cause);
  if (Array.isArray(aggregateErrors)) aggregateErrors.forEach(withoutArguments);
  return error;
}

/** A logger that writes nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
  isLevelEnabled: () => false,
};

/** Lines go out in pieces; pino's stream writes the last ones when the process exits, so only SIGKILL loses any. */
function standardOutput(): LogDestination {
  // Above what the buffer passes on, so that only flush() and the exit write.
  const minLength = 16_000;
  // flush() does nothing while a write is under way: without another the last lines would stay until the next ones come.
  const periodicFlush = 1_000;
  const buffer = new LineBuffer(pino.destination({ dest: 1, sync: false, minLength, periodicFlush }));
  process.prependListener('exit', () => buffer.handOver());
  return buffer;
}

let lastMs = 0;
let lastText = '';

/** `,"time":"…"` for pino. Kept for the millisecond: making the text is a third of the cost of a line. */
function isoTime(): string {
  const now = Date.now();
  if (now !== lastMs) {
    lastMs = now;
    lastText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return lastText;
}
