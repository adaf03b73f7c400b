/** Holds a call about a batch until the batch stands still. A batch takes minutes: asking twice a second is soon enough. */
import { sightOf } from '@remuda/core/access/caller';
import { type BulkJob, isBulkTerminal } from '@remuda/schemas';
import type { FastifyReply } from 'fastify';
import { stillLetIn } from './caller.js';
import type { ServerDeps } from './deps.js';

const ASK_EVERY_MS = 500;

/**
 * The batch when it has ended or is paused, the time is up, the caller is gone, or the server closes.
 * @throws RemudaError as the use case; unauthorized where the key of the caller is not taken any more
 */
export async function holdJob(
  reply: FastifyReply,
  id: string,
  ms: number,
  deps: ServerDeps,
): Promise<BulkJob> {
  const { bulk, drain, clock } = deps;
  const sight = sightOf(reply.request.caller);
  const until = clock.now() + ms;
  for (;;) {
    const job = await bulk.get(id, sight);
    const left = until - clock.now();
    if (standsStill(job) || left <= 0 || drain.closing || reply.raw.destroyed) return job;
    await pause(Math.min(left, ASK_EVERY_MS), reply, deps);
    await stillLetIn(reply.request, deps);
  }
}

function standsStill({ status }: BulkJob): boolean {
  return status === 'paused' || isBulkTerminal(status);
}

/** Shorter where the caller goes or the server closes. */
function pause(ms: number, { raw }: FastifyReply, { drain, clock }: ServerDeps): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      drain.signal.removeEventListener('abort', end);
      raw.off('close', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    drain.signal.addEventListener('abort', end);
    raw.once('close', end);
  });
}
