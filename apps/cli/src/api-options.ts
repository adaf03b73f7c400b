/** The options of every command that speaks to an API: where it is, with which key, and in which form it answers. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { apiAddress } from './commands/option-values.js';

export const jsonOption = () => new Option('--json', 'the answer as JSON, for programs');

const urlOption = () =>
  new Option('--url <address>', 'API to talk to (default: REMUDA_URL, else http://127.0.0.1:8080)').argParser(
    apiAddress,
  );

const keyOption = () =>
  new Option('--key <@file>', 'file that holds the API key (default: REMUDA_API_KEY)').argParser(keyOfFile);

export function withApi(command: Command): Command {
  return command.addOption(jsonOption()).addOption(urlOption()).addOption(keyOption());
}

/** Never the key itself: what stands on a command line everybody on the machine can read. */
function keyOfFile(text: string): string {
  if (!text.startsWith('@')) {
    throw new InvalidArgumentError(
      'Expected @FILE. A key on the command line is seen by everybody on this machine: put it into REMUDA_API_KEY or a file.',
    );
  }
  try {
    return readFileSync(text.slice(1), 'utf8').trim();
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}
