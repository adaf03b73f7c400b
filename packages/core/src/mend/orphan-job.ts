/** A job whose request has no record, or has ended: nobody waits for it, so it goes. What a worker holds, stays. */
import { isTerminal } from '@remuda/schemas';
import type { Mend, SubjectOf } from './mend.js';

export const orphanJob: Mend<SubjectOf<'job'>> = {
  kind: 'job_removed',
  subject: 'job',
  isWrong: async (_, state) => state === null || isTerminal(state.status),
  mend: ({ partition, requestId }, { queues }) => queues.of(partition).remove(requestId),
};
