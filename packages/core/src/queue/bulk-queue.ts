/**
 * The queue of bulk jobs: who has a job here may coordinate it. What it is and where it stands is in its own record
 * (bulk/job-store.ts). A worker that dies loses the lock, and another takes the job up.
 */
import { IdConsumer, type IdConsumerOptions, IdQueue, type QueueConnection } from './id-queue.js';

const NAME = '{bulk}';
const LOOK_AGAIN_MS = 1_000;
const MAX_STALLED_COUNT = 100;

export class BulkQueue extends IdQueue {
  constructor(connection: QueueConnection) {
    super({ ...connection, name: NAME, jobName: 'bulk', lookAgainMs: LOOK_AGAIN_MS });
  }
}

export interface BulkConsumerOptions
  extends QueueConnection,
    Pick<IdConsumerOptions, 'concurrency' | 'lockMs'> {
  /** @returns done: nothing is to be done for it now. again: somebody else is to go on with it. */
  handle(bulkJobId: string): Promise<'done' | 'again'>;
  /** It is out of the queue: what was asked for while it was on the way out has been added to nothing. */
  onOut(bulkJobId: string): void;
}

export class BulkConsumer extends IdConsumer {
  constructor(options: BulkConsumerOptions) {
    const handle = async (id: string): Promise<0 | null> =>
      (await options.handle(id)) === 'done' ? null : 0;
    super({ ...options, name: NAME, maxStalledCount: MAX_STALLED_COUNT, handle });
  }
}
