/** Whether an API answers and is ready, and whether a worker is alive behind it. That none runs is no fault. */
import { ApiClient, ProblemError, UnreachableError } from '../api/api-client.js';
import { reasonOf } from '../cli-error.js';
import { plural } from '../terminal/figures.js';
import { type Finding, fail, ok, warn } from './finding.js';

const ANSWER_MS = 3_000;

export async function checkApi(url: string, key?: string): Promise<Finding[]> {
  const api = new ApiClient(url, { key });
  try {
    const { status, checks } = await api.ready(ANSWER_MS);
    if (status === 'ok') return [ok('api', `${url} is ready`), await checkWorkersOrKey(api)];
    const failing = Object.entries(checks)
      .filter(([, check]) => !check.ok)
      .map(([name, { detail }]) => `${name}: ${detail}`);
    const detail = `${url} is ${status}: ${failing.join('; ') || 'it does not say why'}`;
    return [fail('api', detail, 'Look at its log (.remuda/logs/api.log under `remuda up`).')];
  } catch (error) {
    if (error instanceof UnreachableError) {
      return [
        warn('api', `nothing answers at ${url}`, 'Start one with `remuda up`, or name another with --url.'),
      ];
    }
    return [fail('api', reasonOf(error), 'Name the address of a Remuda API with --url or REMUDA_URL.')];
  }
}

/** An API that is ready, and does not tell this caller about its workers. */
const KEY_PROBLEMS: ReadonlySet<string> = new Set(['unauthorized', 'forbidden']);

async function checkWorkersOrKey(api: ApiClient): Promise<Finding> {
  try {
    return await checkWorkers(api);
  } catch (error) {
    if (!(error instanceof ProblemError) || !KEY_PROBLEMS.has(error.problem.code)) throw error;
    const hint = 'Give a key with the scope read: REMUDA_API_KEY, or --key @FILE.';
    return fail('workers', `not known: ${error.problem.detail ?? error.problem.title}`, hint);
  }
}

async function checkWorkers(api: ApiClient): Promise<Finding> {
  const { workers } = await api.fleet();
  if (workers.length === 0) {
    return warn(
      'workers',
      'none is alive: requests are accepted and wait',
      'Start one: `remuda up --workers 1`.',
    );
  }
  const unhealthy = workers.filter((worker) => !worker.healthy);
  if (unhealthy.length === 0) return ok('workers', `${plural(workers.length, 'worker')} alive`);
  const reasons = unhealthy.map(({ worker_id, unhealthy_reason }) => `${worker_id}: ${unhealthy_reason}`);
  return fail(
    'workers',
    reasons.join('; '),
    'Look at the log of that worker; ending it hands its work to others.',
  );
}
