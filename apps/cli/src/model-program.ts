/** The commands below `remuda models` that speak to the admin API: what can be given, and which edit it means. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ModelEdit } from './api/api-client.js';
import { withApi } from './api-options.js';
import type { CommandContext } from './commands/context.js';
import type { EditOptions } from './commands/edit-model.js';
import * as edits from './commands/model-edits.js';
import { wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

const MOST_WAIT_S = 24 * 3600;
const WAIT_S = 120;
const MOST_HISTORY = 500;

export function addModelCommands(models: Command, choose: Choose): void {
  addStatus(models, choose);
  addLoading(models, choose);
  addTraffic(models, choose);
  addRegistration(models, choose);
}

function addStatus(models: Command, choose: Choose): void {
  withApi(models.command('status').summary('what is wanted of the models, and how far the fleet is'))
    .argument('[name]', 'name of a model')
    .option('--all', 'list models that were taken out too (--json always does)')
    .action((name, options) =>
      choose(async (context) =>
        (await import('./commands/model-status.js')).modelStatus(name, options, context),
      ),
    );
  withApi(models.command('history').summary('what was done to a model, newest first'))
    .argument('<name>', 'name of the model')
    .addOption(new Option('--limit <n>', 'most entries').argParser(wholeNumber(1, MOST_HISTORY)).default(20))
    .action((name, options) =>
      choose(async (context) =>
        (await import('./commands/model-status.js')).modelHistory(name, options, context),
      ),
    );
}

function addLoading(models: Command, choose: Choose): void {
  edit(models.command('load').summary('load a version'))
    .argument('[version]', 'number or alias; without it the newest')
    .action(run(choose, (name, [version]) => edits.loadEdit(name, version)));
  edit(models.command('unload').summary('unload a version'))
    .argument('[version]', 'number or alias; without it all')
    .action(run(choose, (name, [version]) => edits.unloadEdit(name, version)));
  edit(models.command('scale').summary('set how many sessions run side by side on each device'))
    .argument('<instances>', 'sessions', wholeNumber(1, 64))
    .action(run(choose, (name, [instances]) => edits.scaleEdit(name, instances as number)));
}

function addTraffic(models: Command, choose: Choose): void {
  edit(models.command('alias').summary('let an alias lead to a version'))
    .argument('<alias>', 'such as stable or canary')
    .argument('[version]', 'number of the version')
    .option('--remove', 'take the alias away')
    .action(
      run(choose, (name, [alias, version], { remove }) =>
        edits.aliasEdit(name, alias as string, version, remove),
      ),
    );
  edit(models.command('split').summary('spread requests without a version by weight'))
    .argument('[shares...]', 'VERSION=PER_CENT; the stable side gets the rest')
    .option(
      '--stable <version>',
      'version or alias that the others are compared with (default: alias stable, else what default leads to)',
    )
    .option('--no-rollback', 'do not take a canary back when it does worse')
    .addOption(
      new Option('--min-requests <n>', 'requests of each side before they are compared').argParser(
        wholeNumber(1, 1_000_000_000),
      ),
    )
    .option('--end', 'end the split')
    .action((name, shares, options) =>
      choose(async (context) =>
        (await import('./commands/split-model.js')).splitModel(name, shares, options, context),
      ),
    );
  edit(models.command('shadow').summary('run copies of requests on another version'))
    .argument('[version]', 'number or alias of the version')
    .addOption(new Option('--sample <share>', 'share of requests, 0 to 1').argParser(share))
    .option('--end', 'end the shadow')
    .action(run(choose, (name, [version], options) => edits.shadowEdit(name, version, options)));
}

function addRegistration(models: Command, choose: Choose): void {
  edit(models.command('register').summary('register a model, or change what was registered'))
    .argument(
      '[source]',
      'folder, http(s) address or s3://bucket/prefix; a model of the repository needs none',
    )
    .addOption(
      new Option('--load-mode <mode>', 'when it is loaded').choices(['eager', 'on_demand', 'explicit']),
    )
    .option('--version-policy <policy>', 'which versions are kept: latest, all, latest:2, only:1,3')
    .option('--pinned', 'never unloaded to make room')
    .addOption(new Option('--instances <n>', 'sessions on each device').argParser(wholeNumber(1, 64)))
    .action(run(choose, (name, [source], options) => edits.registerEdit(name, source, options)));
  edit(models.command('unregister').summary('take a model out')).action(
    run(choose, (name) => edits.unregisterEdit(name)),
  );
}

function edit(command: Command): Command {
  return withApi(command)
    .argument('<name>', 'name of the model')
    .addOption(
      new Option('--wait [seconds]', 'wait until the fleet serves it so')
        .argParser(wholeNumber(0, MOST_WAIT_S))
        .preset(String(WAIT_S)),
    );
}

// biome-ignore lint/suspicious/noExplicitAny: commander gives what was parsed as any.
type Given = any;

/** An action that makes an edit of what was given. Commander hands over arguments, options, and the command itself. */
function run(choose: Choose, editOf: (name: string, args: Given[], options: Given) => ModelEdit) {
  return (name: string, ...rest: Given[]): void => {
    const options = rest.at(-2) as EditOptions;
    const made = editOf(name, rest.slice(0, -2), options);
    choose(async (context) =>
      (await import('./commands/edit-model.js')).editModel(name, made, options, context),
    );
  };
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError('Expected a number from 0 to 1.');
}
