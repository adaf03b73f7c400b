/**
 * The queue of webhooks: what is sent, how often it was tried and when it is next stands in the delivery itself
 * (webhooks/delivery-store.ts). One queue for all hosts; that none holds up the others is the consumer's business.
 */
import { IdConsumer, type IdConsumerOptions, IdQueue, type QueueConnection } from './id-queue.js';

const NAME = '{webhooks}';
const LOOK_AGAIN_MS = 5_000;
const MAX_STALLED_COUNT = 10;

export class WebhookQueue extends IdQueue {
  constructor(connection: QueueConnection) {
    super({ ...connection, name: NAME, jobName: 'webhook', lookAgainMs: LOOK_AGAIN_MS });
  }
}

export type WebhookConsumerOptions = Omit<IdConsumerOptions, 'name' | 'maxStalledCount'>;

export class WebhookConsumer extends IdConsumer {
  constructor(options: WebhookConsumerOptions) {
    super({ ...options, name: NAME, maxStalledCount: MAX_STALLED_COUNT });
  }
}
