/** The commands below `remuda dead-letters`: what can be given. */
import { ERROR_CLASSES } from '@remuda/schemas';
import { type Command, Option } from 'commander';
import { withApi } from './api-options.js';
import type { CommandContext } from './commands/context.js';
import { wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

/** How many letters one call takes: at most, and without `--limit`. */
interface Many {
  most: number;
  otherwise: number;
}

const MANY: Many = { most: 1_000, otherwise: 1_000 };

export function addLetterCommands(program: Command, choose: Choose): void {
  const letters = program
    .command('dead-letters')
    .summary('what was given up: look at it, run it again, throw it away');
  filtered(letters.command('list', { isDefault: true }).summary('what was given up, newest first'), {
    most: 200,
    otherwise: 50,
  }).action((options) => choose(async (context) => (await commands()).listLetters(options, context)));
  withApi(letters.command('show').summary('one of them, with each item'))
    .argument('<id>', 'id of the request')
    .action((id, options) => choose(async (context) => (await commands()).showLetter(id, options, context)));
  filtered(
    letters
      .command('redrive')
      .summary('run them again, as new requests: these ids, or all that fit --model or --class'),
    MANY,
  )
    .argument('[ids...]', 'ids of requests')
    .option('--version <version>', 'number or alias of the version (default: as the model is served)')
    .action((ids, options) =>
      choose(async (context) => (await commands()).redriveLetters(ids, options, context)),
    );
  filtered(
    letters
      .command('discard')
      .summary('throw them away with their inputs: these ids, or all that fit --model or --class'),
    MANY,
  )
    .argument('[ids...]', 'ids of requests')
    .action((ids, options) =>
      choose(async (context) => (await commands()).discardLetters(ids, options, context)),
    );
}

const commands = () => import('./commands/dead-letters.js');

function filtered(command: Command, { most, otherwise }: Many): Command {
  return withApi(command)
    .option('--model <model>', 'those of a model')
    .addOption(new Option('--class <class>', 'those of a class of error').choices(ERROR_CLASSES))
    .addOption(
      new Option('--limit <n>', `most of them (default: ${otherwise})`).argParser(wholeNumber(1, most)),
    );
}
