/** Requests that end, and a worker's part that delivers their webhooks, over a real Redis and to real HTTP servers. */
import { systemClock } from '@remuda/core/lifecycle/clock';
import { lifeLog } from '@remuda/core/observability/events';
import { createLogger } from '@remuda/core/observability/logger';
import { parseAllowed } from '@remuda/core/webhooks/address-rules';
import { type DeliveriesDeps, WebhookDeliveries } from '@remuda/core/webhooks/deliveries';
import { type SenderOptions, WebhookSender } from '@remuda/core/webhooks/send-webhook';
import { type WebhookParts, webhookParts } from '@remuda/core/webhooks/webhook-parts';
import type { WebhookDelivery, WebhookOption, WebhookState } from '@remuda/schemas';
import { Webhook } from 'standardwebhooks';
import { type Received, WebhookSink } from '../../support/webhook-sink.js';
import {
  answer,
  type Rig as RequestRig,
  type SubmissionOptions,
  setup as setupRequests,
  submission,
  until,
} from '../requests/rig.js';

export interface Rig extends RequestRig {
  parts: WebhookParts;
  sink: WebhookSink;
  /** Lines of the delivering worker's log, parsed. */
  log: Record<string, unknown>[];
  /** Starts what delivers; a second one is a second worker. */
  deliver(options?: DeliverOptions): Promise<WebhookDeliveries>;
  /** Accepts a request with that webhook, and ends it. */
  ended(id: string, webhook: WebhookOption | undefined, options?: EndOptions): Promise<void>;
  /** The one delivery about a request, once it is in that state. */
  delivery(id: string, state?: WebhookState): Promise<WebhookDelivery>;
  verified(received: Received | undefined, secret?: string): Promise<WebhookBody>;
}

export interface WebhookBody {
  type: string;
  timestamp: string;
  data: { request: Record<string, unknown>; result?: Record<string, unknown>; notice?: string };
}

export type DeliverOptions = Partial<DeliveriesDeps> & { sending?: Partial<SenderOptions> };

export interface EndOptions extends SubmissionOptions {
  outcomes?: ('ok' | 'error')[];
  tenant?: string;
  keyId?: string;
}

/** Ten attempts as in earnest, but without the pauses. */
export const AT_ONCE = Array.from({ length: 10 }, () => 0);

export async function setup(): Promise<Rig> {
  const requests = await setupRequests();
  const { redis, keys, metrics, cases, store } = requests;
  const log: Rig['log'] = [];
  const destination = { write: (line: string) => void log.push(JSON.parse(line)) };
  const life = lifeLog(createLogger({ name: 'worker', level: 'info', destination }));
  const shared = { redis, clock: systemClock, life, onError: () => {} };
  const parts = webhookParts({ ...shared, keys });
  const sink = await WebhookSink.start();
  const started: WebhookDeliveries[] = [];
  return {
    ...requests,
    parts,
    sink,
    log,
    async deliver({ sending, ...options } = {}) {
      const allowed = parseAllowed('127.0.0.0/8');
      const delivering = new WebhookDeliveries({
        ...{ ...shared, ...parts, metrics, keyPrefix: keys.space.prefix, lockMs: 30_000, schedule: AT_ONCE },
        sender: new WebhookSender({ allowed, clock: systemClock, ...sending }),
        ...options,
      });
      started.push(delivering);
      await delivering.start();
      return delivering;
    },
    async ended(id, webhook, { outcomes = ['ok' as const], tenant = 'default', keyId, ...options } = {}) {
      const values = outcomes.map((_, at) => at + 1);
      const sent = submission({ id, values, ...options });
      sent.options.webhook = webhook;
      await cases.submit({ ...sent, tenant, keyId: keyId ?? null });
      await answer(store, id, outcomes);
    },
    async delivery(id, state) {
      const find = async (): Promise<WebhookDelivery | undefined> =>
        (await cases.webhooks.deliveriesOf(id, null))[0];
      let last: WebhookDelivery | undefined;
      await until(`the delivery of ${id} is ${state ?? 'there'}`, async () => {
        last = await find();
        return last !== undefined && (state === undefined || last.state === state);
      });
      return last as WebhookDelivery;
    },
    async verified(received, secret) {
      if (!received) throw new Error('nothing was received');
      const key = secret ?? (await cases.webhooks.secret('default')).secret;
      return new Webhook(key).verify(
        received.body,
        received.headers as Record<string, string>,
      ) as WebhookBody;
    },
    async close() {
      // Whoever is held answers, so that what delivers need not wait.
      sink.release();
      await Promise.all(started.map((delivering) => delivering.stop()));
      await parts.queue.close();
      await sink.stop();
      await requests.close();
    },
  };
}
