/**
 * Many submissions in one call, each accepted or refused on its own. They go to Redis in chunks: one write for the
 * records of a chunk, one for the jobs of each of its partitions, and no chunk so large that Redis is busy with it
 * for long while others wait. Once Redis has failed the rest is refused unsent.
 */
import { RemudaError } from '../errors.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import { queueName } from '../queue/partitions.js';
import type { AcceptVerdict, RequestStore } from '../store/request-store.js';
import { recordOf } from './present-request.js';
import type { StoreGuard } from './store-guard.js';
import type { Submission } from './submission.js';
import { type Prepared, type RequestSubmitter, type Submitted, throwIfTaken } from './submit-request.js';

/** addBulk measured: 17k jobs/s at 200 a call, 23k at 1,000, but then with stalls of 70 ms. */
const CHUNK = 200;
const CHUNK_BYTES = 8 * 1024 * 1024;

export interface SubmitManyDeps {
  submitter: RequestSubmitter;
  store: RequestStore;
  queues: JobQueues;
  guard: StoreGuard;
}

type Outcome = Submitted | RemudaError;

export async function submitMany(
  submissions: readonly Submission[],
  deps: SubmitManyDeps,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let failed: RemudaError | undefined;
  for (const chunk of chunksOf(submissions)) {
    const answers: Outcome[] = failed
      ? chunk.map(() => failed as RemudaError)
      : await submitChunk(chunk, deps);
    outcomes.push(...answers);
    failed ??= answers.find(
      (answer) => answer instanceof RemudaError && answer.code === 'store_unavailable',
    ) as RemudaError | undefined;
  }
  return outcomes;
}

function* chunksOf(submissions: readonly Submission[]): Generator<Submission[]> {
  let chunk: Submission[] = [];
  let bytes = 0;
  for (const submission of submissions) {
    chunk.push(submission);
    for (const { tensors } of submission.items)
      for (const tensor of tensors) bytes += tensor.bytes.byteLength;
    if (chunk.length < CHUNK && bytes < CHUNK_BYTES) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}

async function submitChunk(submissions: readonly Submission[], deps: SubmitManyDeps): Promise<Outcome[]> {
  const { submitter, guard } = deps;
  const outcomes = new Array<Outcome>(submissions.length);
  const prepared = new Map<number, Prepared>();
  for (const [i, submission] of submissions.entries()) {
    try {
      prepared.set(i, await submitter.prepare(submission));
    } catch (error) {
      outcomes[i] = guard.explain(error);
    }
  }
  const places = [...prepared].filter(([, { acceptance }]) => !acceptance.document.cache);
  const cached = [...prepared].filter(([, { acceptance }]) => acceptance.document.cache);
  const [answers, others] = await Promise.all([
    storeAndEnqueue(
      places.map(([, entry]) => entry),
      deps,
    ),
    Promise.all(cached.map(([, entry]) => storeCached(entry, deps))),
  ]);
  places.forEach(([i], n) => {
    outcomes[i] = answers[n] as Outcome;
  });
  cached.forEach(([i], n) => {
    outcomes[i] = others[n] as Outcome;
  });
  return outcomes;
}

/** Whether it needs a job turns out one by one. */
async function storeCached(entry: Prepared, { guard, submitter }: SubmitManyDeps): Promise<Outcome> {
  try {
    return await guard.run(() => submitter.replicated(submitter.storeCached(entry)));
  } catch (error) {
    return submitter.refused(entry, error);
  }
}

async function storeAndEnqueue(entries: readonly Prepared[], deps: SubmitManyDeps): Promise<Outcome[]> {
  const { guard, store, submitter } = deps;
  let verdicts: PromiseSettledResult<AcceptVerdict>[];
  try {
    // All leave in this tick, in order, so a second use of an id finds the first.
    verdicts = await guard.run(() =>
      Promise.allSettled(entries.map((entry) => store.accept(entry.acceptance))),
    );
  } catch (error) {
    return entries.map((entry) => submitter.refused(entry, error));
  }
  const accepted = entries.filter((_, i) => isVerdict(verdicts[i], 'accepted'));
  const failures = await enqueue(accepted, deps);
  return Promise.all(
    entries.map(async (entry, i): Promise<Outcome> => {
      try {
        const verdict = verdicts[i] as PromiseSettledResult<AcceptVerdict>;
        if (verdict.status === 'rejected') throw verdict.reason;
        throwIfTaken(verdict.value, entry.acceptance.requestId);
        if (verdict.value === 'known')
          return await guard.run(() => submitter.replicated(submitter.known(entry.acceptance.requestId)));
        if (failures.has(entry)) throw failures.get(entry);
        return submitter.accepted(entry);
      } catch (error) {
        return submitter.refused(entry, error);
      }
    }),
  );
}

function isVerdict(
  settled: PromiseSettledResult<AcceptVerdict> | undefined,
  verdict: AcceptVerdict,
): boolean {
  return settled?.status === 'fulfilled' && settled.value === verdict;
}

/** Adds the jobs, one write for each partition. Returns those that could not be added, and why. */
async function enqueue(
  entries: readonly Prepared[],
  { queues, guard, submitter }: SubmitManyDeps,
): Promise<Map<Prepared, unknown>> {
  const failures = new Map<Prepared, unknown>();
  await Promise.all(
    byPartition(entries).map(async (members) => {
      const queue = queues.of((members[0] as Prepared).partition);
      const tickets = members.map(({ acceptance }) => ticketOf(recordOf(acceptance)));
      await guard
        .run(() => submitter.replicated(queue.addMany(tickets)))
        .catch((error: unknown) => {
          for (const member of members) failures.set(member, error);
        });
    }),
  );
  return failures;
}

function byPartition(entries: readonly Prepared[]): Prepared[][] {
  const groups = new Map<string, Prepared[]>();
  for (const entry of entries) {
    const name = queueName(entry.partition);
    const group = groups.get(name);
    if (group) group.push(entry);
    else groups.set(name, [entry]);
  }
  return [...groups.values()];
}
