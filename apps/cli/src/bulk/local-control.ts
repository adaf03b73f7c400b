/** Bulk jobs by way of the Redis of this machine, without an API between. */
import { CliError } from '../cli-error.js';
import type { BulkControl } from './bulk-control.js';
import type { ServedModel } from './sample-runner.js';

export interface LocalControlOptions {
  redisUrl: string;
  modelsFolder: string;
  filesFolder: string;
  /** A line for the person at the terminal. */
  say(line: string): void;
}

export interface LocalControl extends BulkControl {
  served(model: string, version?: string): Promise<ServedModel>;
  close(): Promise<void>;
}

export async function openLocalControl(_options: LocalControlOptions): Promise<LocalControl> {
  throw new CliError('not there yet');
}

export function newLocalJobId(): string {
  return '';
}
