/**
 * `remuda up`: a whole fleet on this machine, for as long as the command runs. With --samples the bundled samples go
 * through its HTTP API first. Whatever way it ends, it leaves no process behind (local-fleet.ts, guardian.ts).
 */

import { shownAddress } from '@remuda/core/store/redis-address';
import { ApiClient, type ApiClientOptions } from '../api/api-client.js';
import { CliError, Interrupted, reasonOf } from '../cli-error.js';
import { type CommandContext, printJson } from '../commands/context.js';
import { EXIT } from '../exit-codes.js';
import type { SampleReport } from '../samples/send-samples.js';
import { withProgress } from '../terminal/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import { modelsFolderOf, type Project, projectOf } from '../workspace.js';
import { LocalFleet } from './local-fleet.js';
import { findNotLoaded, type NotLoaded, notLoadedText } from './not-loaded.js';
import { type SignalHost, type StopReason, StopSignals } from './stop-signals.js';

export interface UpOptions {
  workers: number;
  apiPort?: number;
  samples?: boolean;
  once?: boolean;
  json?: boolean;
  models?: string;
  state?: string;
}

/** After a second signal: longest time until the process leaves, whatever still hangs. */
const HARD_STOP_MS = 5_000;

/** The stop was asked for before the work was done. */
class StopAsked extends Interrupted {
  constructor(readonly reason: StopReason) {
    super(reason.name);
  }
}

export async function up(
  options: UpOptions,
  context: CommandContext,
  host: SignalHost = process,
): Promise<number> {
  const { terminal } = context;
  const project = projectOf(context.config.cwd, options.state);
  const signals = new StopSignals(host);
  const calls = new AbortController();
  const fleet = newFleet(options, project, context);
  let code: number = EXIT.failed;
  void signals.second.then(({ exitCode }) => {
    code = exitCode;
    terminal.note('stopping at once');
    fleet.kill();
    setTimeout(() => process.exit(exitCode), HARD_STOP_MS).unref();
  });
  try {
    code = await run({ options, context, fleet, signals, calls: calls.signal });
  } catch (error) {
    if (!(error instanceof StopAsked)) throw asCliError(error);
    code = error.reason.exitCode;
  } finally {
    // A call that still waits would hold up the stop of the API.
    calls.abort();
    await stopTelling(fleet, context);
    signals.close();
  }
  return code;
}

function asCliError(error: unknown): CliError {
  return error instanceof CliError ? error : new CliError(reasonOf(error), EXIT.failed, { cause: error });
}

interface Run {
  options: UpOptions;
  context: CommandContext;
  fleet: LocalFleet;
  signals: StopSignals;
  /** Fires when calls of the API have to end. */
  calls: AbortSignal;
}

async function run({ options, context, fleet, signals, calls }: Run): Promise<number> {
  const { terminal } = context;
  const interrupted = signals.first.then((reason): never => {
    throw new StopAsked(reason);
  });
  // It may come when nobody waits for it any more.
  interrupted.catch(() => {});
  const unless = <T>(work: Promise<T>): Promise<T> => Promise.race([work, interrupted, fleet.failed]);

  const key = context.config.apiKey;
  const firstAnswer = options.samples ? firstAnswerOf(fleet, { key, stop: calls }) : undefined;
  await withProgress(terminal, 'starting', (say) => unless(fleet.start(say)));
  const api = new ApiClient(fleet.apiUrl, { key, stop: calls });
  const report = firstAnswer && (await unless(runSamples(api, firstAnswer, terminal)));
  if (report && !options.json) await showReport(report, terminal);
  if (!options.once) terminal.note(addressLines(fleet).join('\n'));
  const found = findNotLoaded(api, fleet.workerPids);
  // Once it is up, a signal is its orderly end, not an interruption.
  const asked = signals.first.then((): NotLoaded[] => []);
  const notLoaded = await (options.once ? unless(found) : Promise.race([found, asked, fleet.failed]));
  warnOf(notLoaded, terminal);
  if (options.json) printJson(terminal, { url: api.url, not_loaded: notLoaded, ...report });
  if (options.once) return report && report.summary.wrong > 0 ? EXIT.failed : EXIT.ok;
  await Promise.race([signals.first, fleet.failed]);
  return EXIT.ok;
}

function warnOf(notLoaded: readonly NotLoaded[], terminal: Terminal): void {
  const warning = notLoadedText(notLoaded);
  if (warning) terminal.note(`${terminal.noteColours.yellow('warn')}  ${warning}`);
}

/** Loaded only where it is wanted: `up` alone starts sooner. */
const loadSamples = () => import('../samples/send-samples.js');

async function firstAnswerOf(fleet: LocalFleet, options: ApiClientOptions): Promise<number | null> {
  const { timeFirstAnswer } = await loadSamples();
  return timeFirstAnswer(new ApiClient(await fleet.apiListens, options));
}

async function runSamples(
  api: ApiClient,
  firstAnswer: Promise<number | null>,
  terminal: Terminal,
): Promise<SampleReport> {
  const { sendSamples } = await loadSamples();
  return withProgress(terminal, 'samples', async (say) =>
    sendSamples(api, { firstAnswerMs: await firstAnswer, say }),
  );
}

async function showReport(report: SampleReport, terminal: Terminal): Promise<void> {
  const { reportLines } = await import('../samples/report-text.js');
  for (const line of reportLines(report, terminal)) terminal.out(line);
}

function newFleet(options: UpOptions, project: Project, { terminal, config }: CommandContext): LocalFleet {
  const { cwd, env } = config;
  return new LocalFleet({
    project,
    modelsFolder: modelsFolderOf(cwd, options.models ?? config.modelsFolder),
    workers: options.workers,
    apiPort: options.apiPort,
    env,
    cwd,
    say: (line) => {
      terminal.status?.('');
      terminal.note(line);
    },
  });
}

async function stopTelling(fleet: LocalFleet, { terminal }: CommandContext): Promise<void> {
  try {
    await withProgress(terminal, 'stopping', () => fleet.stop());
  } catch (error) {
    terminal.note(`not everything stopped cleanly: ${reasonOf(error)}`);
  }
}

function addressLines(fleet: LocalFleet): string[] {
  return [
    '',
    'Remuda is up. Ctrl-C stops it.',
    `  API        ${fleet.apiUrl}`,
    `  docs       ${fleet.apiUrl}/docs`,
    `  metrics    ${fleet.apiUrl}/metrics`,
    `  workers    ${fleet.apiUrl}/v1/fleet`,
    `  Redis      ${shownAddress(fleet.redisUrl)}`,
    `  logs       ${fleet.logs}`,
  ];
}
