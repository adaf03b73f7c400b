/**
 * What can be done with bulk jobs: each call checks, writes into Redis what is wanted, and wakes whoever coordinates the
 * job. The work itself is a coordinator's (coordinator/coordinator.ts), in a worker that takes the job from its queue.
 */
import { type BulkJob, isBulkTerminal } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { RemudaError } from '../errors.js';
import { newBulkJobId } from '../ids.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { BulkQueue } from '../queue/bulk-queue.js';
import type { BulkCaller, BulkFiles, BulkUseCases } from './bulk-use-cases.js';
import { type CheckDeps, checkSpec } from './check-spec.js';
import { type BulkSpec, newBulkState, type StoredBulkJob } from './job-record.js';
import { type BulkAsk, specOf, specOfOpenAi } from './job-spec.js';
import type { BulkJobStore, Steering } from './job-store.js';
import { canResume, presentBulkJob } from './present-job.js';

export interface BulkServiceDeps {
  store: BulkJobStore;
  queue: Pick<BulkQueue, 'add'>;
  files: BulkFiles;
  /** REMUDA_FILES, absolute: where jobs work whose output is no local path. */
  filesFolder: string;
  /** Of the request use cases. */
  resolve: CheckDeps['resolve'];
  /** Around what is asked of Redis. Default: nothing. */
  guard?: { run<T>(work: () => Promise<T>): Promise<T> };
  clock?: Clock;
}

const UNGUARDED = { run: <T>(work: () => Promise<T>): Promise<T> => work() };

export function createBulkService(deps: BulkServiceDeps): BulkUseCases {
  const { store, queue, files, filesFolder, clock = systemClock, guard = UNGUARDED } = deps;

  const put = async (spec: BulkSpec, priority: number): Promise<BulkJob> => {
    await checkSpec(spec, deps);
    await guard.run(async () => {
      await store.create(spec, newBulkState(), priority);
      await queue.add(spec.id);
    });
    return presentBulkJob(await find(spec.id));
  };

  const find = async (id: string, sight: Sight = null): Promise<StoredBulkJob> =>
    seen(await guard.run(() => store.read(id)), id, sight);

  /** @param change what of the job; it throws where that cannot be done */
  const steer = async (
    id: string,
    sight: Sight | undefined,
    change: (job: StoredBulkJob) => Steering,
  ): Promise<BulkJob> => {
    const job = await guard.run(() =>
      store.steer(id, clock.now(), (now) => change(seen(now, id, sight ?? null))),
    );
    const steered = seen(job, id, sight ?? null);
    // It may be there already: then nothing happens.
    if (!isBulkTerminal(steered.state.status) && steered.state.status !== 'paused')
      await guard.run(() => queue.add(id));
    return presentBulkJob(steered);
  };

  const known = async (jobId: string | undefined): Promise<BulkJob | null> => {
    const job = jobId === undefined ? null : await guard.run(() => store.read(jobId));
    // Its first call may have died between record and queue.
    if (job && job.epoch === 0) await guard.run(() => queue.add(job.spec.id));
    return job && presentBulkJob(job);
  };

  const createOnce = async (
    caller: BulkCaller,
    specFor: (ask: BulkAsk) => Promise<BulkSpec>,
    priority: number,
  ): Promise<BulkJob> => {
    const before = await known(caller.jobId);
    if (before) return before;
    const id = caller.jobId ?? newBulkJobId();
    return put(await specFor({ id, caller, now: clock.now(), filesFolder, files }), priority);
  };

  return {
    files,
    create: (wanted, caller) => createOnce(caller, (ask) => specOf(wanted, ask), wanted.priority),
    createOpenAi: (wanted, caller) =>
      createOnce(caller, (ask) => specOfOpenAi(wanted, ask), DEFAULT_PRIORITY),
    get: async (id, sight) => presentBulkJob(await find(id, sight)),
    async list(page, sight) {
      const { jobs, hasMore } = await guard.run(() => store.list(page, sight));
      return { entries: jobs.map(presentBulkJob), hasMore };
    },
    pause: (id, sight) => steer(id, sight, paused),
    resume: (id, sight) => steer(id, sight, resumed),
    cancel: (id, sight) => steer(id, sight, (job) => cancelled(job, clock.now())),
    retryFailed: (id, sight) => steer(id, sight, retried),
    setPriority: (id, priority, sight) => steer(id, sight, (job) => reprioritised(job, priority)),
  };
}

const DEFAULT_PRIORITY = 5;

function seen(job: StoredBulkJob | null, id: string, sight: Sight): StoredBulkJob {
  if (job && (sight === null || job.spec.tenant === sight)) return job;
  throw new RemudaError('batch_not_found', `there is no bulk job ${id}`);
}

function paused({ state, wanted, epoch, spec }: StoredBulkJob): Steering {
  const { status } = state;
  if (status === 'paused') return wanted === 'pause' ? {} : { wanted: 'pause' };
  if (wanted === 'cancel' || !['validating', 'in_progress'].includes(status))
    throw refused(spec.id, status, 'paused', 'only a job that is validating or in progress can be');
  // Nobody has it yet: it is paused at once.
  if (epoch === 0) return { wanted: 'pause', state: { ...state, status: 'paused' } };
  return { wanted: 'pause' };
}

function resumed({ state, wanted, spec }: StoredBulkJob): Steering {
  const { status, times, reason } = state;
  const goesOn = { ...state, status: begun(state), reason: null, faults: [] };
  if (status === 'paused') return { wanted: 'run', state: goesOn, place: 'open' };
  if (!isBulkTerminal(status) && wanted === 'pause') return { wanted: 'run' };
  if (status === 'failed' && canResume({ spec, state })) {
    const { failed: _, finalizing: __, ...kept } = times;
    return { wanted: 'run', state: { ...goesOn, times: kept, forgive: true }, place: 'anew' };
  }
  throw refused(
    spec.id,
    status,
    'resumed',
    status === 'failed'
      ? `what it failed with (${reason?.code}) does not pass; correct it and start a new job`
      : 'only a job that is paused, or that failed for a reason that can pass, can be',
  );
}

function cancelled({ state, spec, epoch }: StoredBulkJob, now: number): Steering {
  const { status, times } = state;
  if (status === 'cancelled') return {};
  if (isBulkTerminal(status)) throw refused(spec.id, status, 'cancelled', 'it has ended');
  const cancelling = { ...times, cancelling: times.cancelling ?? now };
  // Nobody has had it: there is nothing that could be given.
  if (epoch === 0) {
    const ended = { ...state, status: 'cancelled' as const, times: { ...cancelling, cancelled: now } };
    return { wanted: 'cancel', state: ended };
  }
  if (status === 'paused')
    return { wanted: 'cancel', state: { ...state, status: 'cancelling', times: cancelling }, place: 'open' };
  return { wanted: 'cancel' };
}

function retried({ state, spec }: StoredBulkJob): Steering {
  const { status, progress, times } = state;
  if (!isBulkTerminal(status)) throw refused(spec.id, status, 'run anew', 'it has not ended');
  if (progress.rows_failed === 0) throw refused(spec.id, status, 'run anew', 'no row of it has failed');
  const { completed: _, failed: __, cancelled: ___, expired: ____, finalizing: _____, ...kept } = times;
  const only = status === 'cancelled' || status === 'expired' ? status : null;
  const next = { ...state, status: 'in_progress' as const, reason: null, faults: [], times: kept, only };
  return { wanted: 'run', state: { ...next, round: state.round + 1, forgive: false }, place: 'anew' };
}

function reprioritised({ state, spec }: StoredBulkJob, priority: number): Steering {
  if (isBulkTerminal(state.status))
    throw refused(spec.id, state.status, 'given another priority', 'it has ended');
  return { priority };
}

function begun({ times }: StoredBulkJob['state']): 'validating' | 'in_progress' {
  return times.in_progress === undefined ? 'validating' : 'in_progress';
}

function refused(id: string, status: string, what: string, why: string): RemudaError {
  return new RemudaError('batch_state', `bulk job ${id} is ${status} and cannot be ${what}: ${why}`, {
    status,
  });
}
