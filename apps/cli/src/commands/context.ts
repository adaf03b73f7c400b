/** What every command is given: where it writes, its settings, and what it may read. */
import { ApiClient } from '../api/api-client.js';
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
  /** Goes before REMUDA_API_KEY. */
  key?: string;
  /** The API's own answer, for programs. */
  json?: boolean;
}

/** The API that a command talks to. */
export function apiOf({ url, key }: Pick<ApiOptions, 'url' | 'key'>, config: CliConfig): ApiClient {
  return new ApiClient(url ?? config.url, { key: key ?? config.apiKey });
}

export function printJson({ out }: Terminal, value: unknown): void {
  out(JSON.stringify(value, null, 2));
}
