/** `remuda score`: a file of rows in, a file of answers out; against an API, or with --local all of it here. */
import type { Scoring } from '../bulk/score-api.js';
import type { ScoreOptions } from '../bulk/score-plan.js';
import { usageError } from '../cli-error.js';
import { type SignalHost, StopSignals } from '../up/stop-signals.js';
import type { CommandContext } from './context.js';

/** After a second signal: longest time until the process leaves, whatever still hangs. */
const HARD_STOP_MS = 5_000;

export async function score(
  options: ScoreOptions,
  context: CommandContext,
  host: SignalHost = process,
): Promise<number> {
  refuseBoth(options);
  refuseLocalOptions(options);
  const signals = new StopSignals(host);
  let leave: NodeJS.Timeout | undefined;
  void signals.second.then(({ exitCode }) => {
    leave = setTimeout(() => process.exit(exitCode), HARD_STOP_MS).unref();
  });
  try {
    return await way(options)({ options, context, signals });
  } finally {
    clearTimeout(leave);
    signals.close();
  }
}

/** What belongs to a new job cannot be said of one that runs. */
function refuseBoth({ resume, model, in: input, dryRun }: ScoreOptions): void {
  if (resume === undefined) return;
  const given = [model !== undefined && '--model', input !== undefined && '--in', dryRun && '--dry-run'];
  const found = given.filter(Boolean);
  if (found.length > 0)
    throw usageError(`${found.join(' and ')} cannot stand with --resume: the job has its own.`);
}

function refuseLocalOptions({ local, workers, models }: ScoreOptions): void {
  if (local) return;
  const given = [workers !== undefined && '--workers', models !== undefined && '--models'].filter(Boolean);
  if (given.length === 0) return;
  throw usageError(
    `${given.join(' and ')} ${given.length > 1 ? 'are' : 'is'} about --local; a fleet has its own workers and models.`,
  );
}

function way({ dryRun, local }: ScoreOptions): (scoring: Scoring) => Promise<number> {
  if (dryRun) return async (scoring) => (await import('../bulk/dry-run.js')).dryRun(scoring);
  if (local) return async (scoring) => (await import('../bulk/score-local.js')).scoreLocally(scoring);
  return async (scoring) => (await import('../bulk/score-api.js')).scoreByApi(scoring);
}
