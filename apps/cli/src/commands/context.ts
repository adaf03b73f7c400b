/** What every command is given: where it writes, its settings, and what it may read. */
import type { CliConfig } from '../config.js';
import type { Terminal } from '../terminal/terminal.js';

export interface CommandContext {
  terminal: Terminal;
  config: CliConfig;
  stdin: AsyncIterable<Buffer | string>;
}

export interface ApiOptions {
  /** Goes before REMUDA_URL. */
  url?: string;
  /** The API's own answer, for programs. */
  json?: boolean;
}

export function printJson({ out }: Terminal, value: unknown): void {
  out(JSON.stringify(value, null, 2));
}
