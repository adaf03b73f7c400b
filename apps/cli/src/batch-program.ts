/** The commands below `remuda batches` and `remuda files`: what can be given. */
import { BULK_FILE_PURPOSES } from '@remuda/schemas';
import { type Command, Option } from 'commander';
import { withApi } from './api-options.js';
import type { BulkAction } from './bulk/bulk-control.js';
import type { CommandContext } from './commands/context.js';
import { wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

const MOST_LISTED = 100;

const batches = () => import('./commands/batches.js');
const files = () => import('./commands/files.js');

const ACTIONS: Readonly<Record<BulkAction, string>> = {
  pause: 'let it finish what is under way, and start nothing more',
  resume: 'go on with one that is paused, or has failed for a reason that has passed',
  cancel: 'end it; what is done is kept, and given',
  'retry-failed': 'run the rows that have failed once more, and put their answers in their places',
};

export function addBatchCommands(program: Command, choose: Choose): void {
  const command = program
    .command('batches')
    .summary('bulk jobs: look at them, steer them, fetch their output');
  paged(command.command('list', { isDefault: true }).summary('the newest first')).action((options) =>
    choose(async (context) => (await batches()).listBatches(options, context)),
  );
  ofOne(command, 'show', 'how far one is, how fast and where').action((id, options) =>
    choose(async (context) => (await batches()).showBatch(id, options, context)),
  );
  ofOne(command, 'watch', 'follow one to its end; ends like `remuda score`').action((id, options) =>
    choose(async (context) => (await batches()).watchBatch(id, options, context)),
  );
  for (const [action, summary] of Object.entries(ACTIONS) as [BulkAction, string][]) {
    ofOne(command, action, summary).action((id, options) =>
      choose(async (context) => (await batches()).steerBatch(id, action, options, context)),
    );
  }
  addPriority(command, choose);
  ofOne(command, 'output', 'fetch its output')
    .option('--out <file>', 'where it goes')
    .option('--errors', 'the rows that failed in place of the output')
    .option('--overwrite', 'take the place of a file that is there')
    .action((id, options) => choose(async (context) => (await batches()).batchOutput(id, options, context)));
}

function addPriority(command: Command, choose: Choose): void {
  withApi(command.command('priority').summary('let it go before others, or behind them, while it runs'))
    .argument('<id>', 'id of the job')
    .addArgument(command.createArgument('<n>', '0 goes first, 9 last').argParser(wholeNumber(0, 9)))
    .action((id, priority, options) =>
      choose(async (context) => (await batches()).setBatchPriority(id, priority, options, context)),
    );
}

function ofOne(command: Command, name: string, summary: string): Command {
  return withApi(command.command(name).summary(summary)).argument('<id>', 'id of the job');
}

function paged(command: Command): Command {
  return withApi(command)
    .addOption(new Option('--limit <n>', 'most of them').argParser(wholeNumber(1, MOST_LISTED)).default(20))
    .option('--after <id>', 'those that come behind this one');
}

export function addFileCommands(program: Command, choose: Choose): void {
  const command = program.command('files').summary('files that bulk jobs read and have written');
  paged(command.command('list', { isDefault: true }).summary('the newest first'))
    .addOption(new Option('--purpose <purpose>', 'those of a purpose').choices(BULK_FILE_PURPOSES))
    .action((options) => choose(async (context) => (await files()).listFiles(options, context)));
  withApi(command.command('upload').summary('send one; prints its id'))
    .argument('<path>', 'file; "-" is standard input')
    .option('--name <name>', 'name that it gets (default: its own)')
    .action((path, options) => choose(async (context) => (await files()).uploadOne(path, options, context)));
  withApi(command.command('download').summary('fetch one'))
    .argument('<id>', 'id of the file')
    .option('--out <file>', 'where it goes (default: its name)')
    .option('--overwrite', 'take the place of a file that is there')
    .action((id, options) => choose(async (context) => (await files()).downloadOne(id, options, context)));
  withApi(command.command('delete').summary('delete them'))
    .argument('<ids...>', 'ids of files')
    .action((ids, options) => choose(async (context) => (await files()).deleteFiles(ids, options, context)));
}
