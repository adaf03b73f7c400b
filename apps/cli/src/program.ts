/**
 * The command line: what can be given, and which command it goes to. Commands are loaded when they are run, so that
 * each start loads only what it needs. Every command returns its exit code; every error becomes one here.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { addAccessCommands } from './access-program.js';
import { jsonOption, withApi } from './api-options.js';
import { addBatchCommands, addFileCommands } from './batch-program.js';
import { CliError } from './cli-error.js';
import type { CommandContext } from './commands/context.js';
import { namedValue, pointInTime, printable, wholeNumber } from './commands/option-values.js';
import type { CliConfig } from './config.js';
import { EXIT, EXIT_HELP } from './exit-codes.js';
import { addLetterCommands } from './letter-program.js';
import { addModelCommands } from './model-program.js';
import { addModelTools } from './model-tools.js';
import { addScore } from './score-program.js';
import type { Terminal } from './terminal/terminal.js';
import { addWebhookCommands } from './webhook-program.js';

export interface ProgramContext {
  terminal: Terminal;
  /** Read when a command runs: --help works in a wrong environment. */
  config: () => CliConfig;
  stdin: AsyncIterable<Buffer | string>;
}

type Run = (context: CommandContext) => Promise<number>;

const VERSION = '0.1.0';
const MOST_WORKERS = 64;
const MOST_WAIT_S = 24 * 3600;

/** @returns the exit code */
export async function runProgram(args: readonly string[], context: ProgramContext): Promise<number> {
  const { terminal } = context;
  let chosen: Run | undefined;
  const program = buildProgram((run) => {
    chosen = run;
  });
  try {
    writeThrough(program, terminal);
    await program.parseAsync(args, { from: 'user' });
    return (await chosen?.({ terminal, config: context.config(), stdin: context.stdin })) ?? EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return report(error, terminal);
  }
}

function report(error: unknown, terminal: Terminal): number {
  if (error instanceof CliError) {
    terminal.note(terminal.noteColours.red(error.message));
    return error.exitCode;
  }
  // Not foreseen: the stack is what a bug report needs.
  terminal.note(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failed;
}

/** Subcommands have settings of their own, made from those of the program when they are added. */
function writeThrough(program: Command, terminal: Terminal): void {
  for (const command of withSubcommands(program)) {
    // After a wrong option, what helps is the page of the command that it was given to.
    command.showHelpAfterError(`(${fullName(command)} --help shows what there is)`);
    command.exitOverride().configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.note(text.trimEnd()),
    });
  }
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name();
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

function buildProgram(choose: (run: Run) => void): Command {
  const program = new Command('remuda')
    .description('A durable, batching inference fleet for ONNX models on Node.')
    .version(VERSION)
    // Options behind the name of a command are its own: --version of `models profile`, --json of any below `models`.
    .enablePositionalOptions()
    .addHelpText('after', `\n${EXIT_HELP}`);
  addUp(program, choose);
  addSubmit(program, choose);
  addResult(program, choose);
  addTrace(program, choose);
  addScore(program, choose);
  addBatchCommands(program, choose);
  addFileCommands(program, choose);
  addModels(program, choose);
  addFleet(program, choose);
  addAccessCommands(program, choose);
  addLetterCommands(program, choose);
  addWebhookCommands(program, choose);
  addDoctor(program, choose);
  for (const command of withSubcommands(program)) describeBySummary(command);
  return program;
}

/** What the list of commands says of one, its own --help says too. */
function describeBySummary(command: Command): void {
  const summary = command.summary();
  if (command.description() === '')
    command.description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`).summary(summary);
}

const waitOption = () =>
  new Option('--wait <seconds>', 'wait for the end of the request').argParser(wholeNumber(0, MOST_WAIT_S));
const modelsOption = () =>
  new Option('--models <folder>', 'model repository (default: REMUDA_MODELS, else ./models)');
const stateOption = () =>
  new Option('--state <folder>', "Redis' data and the logs (default: .remuda of the project)");

function addUp(program: Command, choose: (run: Run) => void): void {
  program
    .command('up')
    .summary('start a fleet on this machine')
    .description('Starts Redis, the API and workers on this machine, and runs until Ctrl-C (twice: at once).')
    .addOption(
      new Option('--workers <n>', 'worker processes').argParser(wholeNumber(0, MOST_WORKERS)).default(1),
    )
    .addOption(
      new Option('--api-port <port>', 'port of the API; 0 takes a free one').argParser(
        wholeNumber(0, 65_535),
      ),
    )
    .option('--samples', 'send the bundled samples through the API first, and show their answers')
    .option('--once', 'end when the samples are done: 0 when all are right')
    .addOption(jsonOption())
    .addOption(modelsOption())
    .addOption(stateOption())
    .action((options) => choose(async (context) => (await import('./up/up.js')).up(options, context)));
}

function addSubmit(program: Command, choose: (run: Run) => void): void {
  withApi(
    program
      .command('submit')
      .summary('send a request')
      .description('Sends a request to a model, from image files, named inputs, or a JSON file.')
      .argument('<model>', 'name of the model')
      .argument('[source]', '"-": the request as JSON on standard input', standardInput)
      .option('--image <files...>', 'image files; several are the items of one request')
      .option(
        '--input <name=value>',
        'an input: JSON, text, or @FILE (.json, or any file as base64); repeatable',
        namedValue,
      )
      .option('--file <request.json>', 'a whole InferenceRequest; "-" is standard input')
      .option('--version <version>', 'number or alias of the version (default: as the model is served)')
      .addOption(waitOption())
      .addOption(
        new Option(
          '--patience <seconds>',
          'send it again for so long while it is refused for load, when Retry-After says',
        ).argParser(wholeNumber(0, MOST_WAIT_S)),
      )
      .option('--webhook <url>', 'address that is told of the end of the request')
      .option(
        '--idempotency-key <key>',
        'your name for this call: sent again with the same content, it makes no second request',
        printable,
      )
      .addOption(new Option('--priority <n>', '0 goes first, 9 last').argParser(wholeNumber(0, 9)))
      .addOption(
        new Option('--timeout-ms <n>', 'expire when it has not begun to run by then').argParser(
          wholeNumber(1, MOST_WAIT_S * 1_000),
        ),
      )
      .addOption(
        new Option('--start-by <time>', 'the same as a point in time (RFC 3339)').argParser(pointInTime),
      )
      .addOption(
        new Option('--finish-timeout <ms>', 'expire when it has not ended by then').argParser(
          wholeNumber(1, MOST_WAIT_S * 1_000),
        ),
      )
      .addOption(
        new Option('--finish-by <time>', 'the same as a point in time (RFC 3339)').argParser(pointInTime),
      ),
  ).action((model, source, options) =>
    choose(async (context) => (await import('./commands/submit.js')).submit(model, source, options, context)),
  );
}

function standardInput(text: string): '-' {
  if (text === '-') return text;
  throw new InvalidArgumentError(
    'Expected "-" for standard input. Give inputs with --input NAME=VALUE, or a whole request with --file FILE.',
  );
}

function addResult(program: Command, choose: (run: Run) => void): void {
  withApi(
    program
      .command('result')
      .summary('show the outcome of a request')
      .argument('<id>', 'id of the request')
      .addOption(waitOption())
      .option('--save <folder>', 'write the outputs to files (.npy, .txt) and the rest to result.json'),
  ).action((id, options) =>
    choose(async (context) => (await import('./commands/result.js')).result(id, options, context)),
  );
}

function addTrace(program: Command, choose: (run: Run) => void): void {
  withApi(
    program
      .command('trace')
      .summary('show why a request went where it went, and where it ran')
      .argument('<id>', 'id of the request'),
  ).action((id, options) =>
    choose(async (context) => (await import('./commands/trace.js')).trace(id, options, context)),
  );
}

function addModels(program: Command, choose: (run: Run) => void): void {
  const models = withApi(
    program
      .command('models')
      // Its options stand for its subcommands too, which have them themselves.
      .enablePositionalOptions()
      .summary('list the models, show what one takes and gives, say how they are served, try them out')
      .argument('[name]', 'name of a model'),
  ).action((name, options) =>
    choose(async (context) => (await import('./commands/models.js')).models(name, options, context)),
  );
  addShow(models, choose);
  addModelCommands(models, choose);
  addModelTools(models, choose);
}

/** A model may have the name of a subcommand. */
function addShow(models: Command, choose: (run: Run) => void): void {
  withApi(
    models
      .command('show')
      .summary('show what one takes and gives: the same as `remuda models NAME`, whatever the name')
      .argument('<name>', 'name of the model'),
  ).action((name, options) =>
    choose(async (context) => (await import('./commands/models.js')).models(name, options, context)),
  );
}

function addFleet(program: Command, choose: (run: Run) => void): void {
  withApi(
    program
      .command('fleet')
      .summary('list the workers that are alive')
      .option('--devices', 'the devices of each: memory, utilisation, which provider loads'),
  ).action((options) =>
    choose(async (context) => (await import('./commands/fleet.js')).fleet(options, context)),
  );
}

function addDoctor(program: Command, choose: (run: Run) => void): void {
  withApi(
    program
      .command('doctor')
      .summary('look at everything that a fleet on this machine needs')
      .option('--load', 'also load each model, in a process of its own')
      .addOption(modelsOption())
      .addOption(stateOption()),
  ).action((options) =>
    choose(async (context) => (await import('./commands/doctor.js')).doctor(options, context)),
  );
}
