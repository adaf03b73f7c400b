/** The subcommands of `remuda models` that work on files and need no fleet: profile, validate, add, diff, manifest. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from './commands/context.js';
import { wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;

/** What is common to those that try a model. */
export interface TrialFlags {
  inputs?: string[];
  dims?: Record<string, number>;
}

const MOST_BATCH = 65_536;

const jsonOption = () => new Option('--json', 'the answer as JSON, for programs');
const modelsOption = () =>
  new Option('--models <folder>', 'model repository (default: REMUDA_MODELS, else ./models)');
const inputsOption = () =>
  new Option('--inputs <file...>', 'requests as JSON, or image files (default: golden cases, else made up)');
const dimsOption = () =>
  new Option('--dims <axis=size...>', 'sizes of open axes of made-up inputs: W=320, or x.3=320').argParser(
    axisSize,
  );

export function addModelTools(models: Command, choose: (run: Run) => void): void {
  addProfile(models, choose);
  addValidate(models, choose);
  addAdd(models, choose);
  addDiff(models, choose);
  addManifest(models, choose);
}

function addProfile(models: Command, choose: (run: Run) => void): void {
  models
    .command('profile')
    .summary('measure a model and find its best settings')
    .description(
      'Measures a model over batch sizes × instances × threads, and recommends the fastest setting.',
    )
    .argument('<name>', 'model of the repository')
    .option('--version <n>', 'version (default: the newest)')
    .option('--latency-ms <ms>', 'the fastest whose p95 of a run is below this', positive)
    .addOption(
      new Option('--max-batch <rows>', 'largest batch that is tried')
        .argParser(wholeNumber(1, MOST_BATCH))
        .default(64),
    )
    .option('--seconds <s>', 'length of one measurement', positive, 0.5)
    .addOption(
      new Option('--repeats <n>', 'measurements of each finalist').argParser(wholeNumber(1, 100)).default(3),
    )
    .option('--exhaustive', 'measure every combination')
    .option('--write', 'write the recommendation into model.yaml; its comments stay')
    .option('--plot <file>', 'where the plot goes (default: profiles/<name>@<version>.svg in .remuda)')
    .addOption(inputsOption())
    .addOption(dimsOption())
    .addOption(modelsOption())
    .addOption(jsonOption())
    .action((name, options) =>
      choose(async (context) =>
        (await import('./commands/models-profile.js')).profile(name, options, context),
      ),
    );
}

function addValidate(models: Command, choose: (run: Run) => void): void {
  models
    .command('validate')
    .summary('try a model: load it, run its golden cases, compare batches with single rows')
    .argument('<path>', 'model folder, version folder, or .onnx file')
    .option('--version <n>', 'version of a model folder (default: the newest)')
    .addOption(inputsOption())
    .addOption(dimsOption())
    .addOption(jsonOption())
    .action((path, options) =>
      choose(async (context) =>
        (await import('./commands/models-validate.js')).validate(path, options, context),
      ),
    );
}

function addAdd(models: Command, choose: (run: Run) => void): void {
  models
    .command('add')
    .summary('add a file or folder as the next version of a model, once it is validated')
    .argument('<path>', 'model folder, version folder, or .onnx file')
    .option('--name <name>', 'model (default: the name of the file or folder)')
    .option('--version <n>', 'version (default: the next)')
    .addOption(inputsOption())
    .addOption(dimsOption())
    .addOption(modelsOption())
    .addOption(jsonOption())
    .action((path, options) =>
      choose(async (context) => (await import('./commands/models-add.js')).add(path, options, context)),
    );
}

function addDiff(models: Command, choose: (run: Run) => void): void {
  models
    .command('diff')
    .summary('compare two versions: files, settings, signature, answers')
    .argument('<a>', 'name@version, or a name and two versions')
    .argument('<b>', 'name@version, or the first version')
    .argument('[c]', 'the second version')
    .addOption(inputsOption())
    .addOption(dimsOption())
    .addOption(modelsOption())
    .addOption(jsonOption())
    .action((a, b, c, options) =>
      choose(async (context) =>
        (await import('./commands/models-diff.js')).diff([a, b, c], options, context),
      ),
    );
}

function addManifest(models: Command, choose: (run: Run) => void): void {
  models
    .command('manifest')
    .summary('list the files of a model folder in manifest.json, for publishing it')
    .argument('<folder>', 'model folder')
    .option('--name <name>', 'the only name that it can be registered under (default: any)')
    .addOption(jsonOption())
    .action((folder, options) =>
      choose(async (context) =>
        (await import('./commands/models-manifest.js')).manifest(folder, options, context),
      ),
    );
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('Expected a number above 0.');
  return value;
}

function axisSize(text: string, before: Record<string, number> = {}): Record<string, number> {
  const [, axis, size] = /^(.+)=([1-9]\d*)$/.exec(text) ?? [];
  if (axis === undefined) throw new InvalidArgumentError('Expected the name of an axis and its size: W=320.');
  return { ...before, [axis]: Number(size) };
}
