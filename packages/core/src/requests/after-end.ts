/** Everything that is done after a request has ended, in API and worker processes alike. Run by aftermath.ts. */
import type { RequestStore } from '../store/request-store.js';
import type { WebhookOutbox } from '../webhooks/outbox.js';
import { requestEnded } from '../webhooks/request-ended.js';
import type { AftermathHandler } from './aftermath.js';

export interface AfterEndDeps {
  store: RequestStore;
  /** Webhooks: the event is frozen and queued. */
  outbox: WebhookOutbox;
  /** Keeps the answers of models with a result cache, and gives them to identical requests. */
  coalescing: AftermathHandler;
}

export function afterEnd(deps: AfterEndDeps): AftermathHandler[] {
  return [requestEnded(deps), deps.coalescing];
}
