/**
 * What is sent to a webhook, and the log of how that went. A delivery is one event on its way to one address; its id is
 * the webhook-id that the receiver sees, the same in every attempt.
 */
import * as z from 'zod';
import { RequestRecord } from './inference-request.js';
import { InferenceResult } from './inference-result.js';
import { WebhookEvent, WebhookPayload } from './webhook.js';

/** Largest body that is sent, in bytes of JSON; a larger `full` one falls back to `thin`, and says so. */
export const WEBHOOK_BODY_BYTES = 256 * 1024;

const Timestamp = z.iso.datetime().describe('RFC 3339, UTC.');

/** `data` of the events request.*. */
export const RequestEventData = z
  .strictObject({
    request: RequestRecord,
    result: InferenceResult.optional().describe('In the payload full: as GET …/result gives it in JSON.'),
    notice: z.string().optional().describe('Why the result is not there although it was asked for.'),
  })
  .meta({ id: 'RequestEventData' });
export type RequestEventData = z.infer<typeof RequestEventData>;

/** The body that is sent, as Standard Webhooks has it. */
export const WebhookMessage = z
  .strictObject({
    type: WebhookEvent,
    timestamp: Timestamp.describe('When it happened.'),
    data: z.record(z.string(), z.unknown()).describe('Of request.*: RequestEventData.'),
  })
  .meta({ id: 'WebhookMessage' });
export type WebhookMessage = z.infer<typeof WebhookMessage>;

export const WEBHOOK_OUTCOMES = [
  'delivered',
  'answer',
  'redirect',
  'gone',
  'timeout',
  'connection',
  'address_refused',
] as const;
export const WebhookAttempt = z
  .strictObject({
    at: Timestamp,
    outcome: z
      .enum(WEBHOOK_OUTCOMES)
      .describe(
        'delivered: 2xx. answer: another status. redirect: 3xx, which is not followed. gone: 410. timeout: no answer in 15 s. connection: none, or cut. address_refused: the name resolves to addresses that may not be reached.',
      ),
    status: z.int().nullable().describe('HTTP status; null: no answer came.'),
    error: z.string().nullable(),
    duration_ms: z.int(),
  })
  .meta({ id: 'WebhookAttempt' });
export type WebhookAttempt = z.infer<typeof WebhookAttempt>;

export const WebhookState = z
  .enum(['pending', 'delivered', 'given_up'])
  .describe('given_up: out of attempts, or the endpoint is gone, disabled or deleted.');
export type WebhookState = z.infer<typeof WebhookState>;

export const WebhookDelivery = z
  .strictObject({
    id: z.string().describe('The webhook-id that is sent with every attempt.'),
    type: WebhookEvent,
    subject: z.string().describe('Id of the request or batch that it is about.'),
    tenant: z.string(),
    url: z.string(),
    endpoint_id: z.string().nullable().describe('null: it goes where the request itself asked for it to go.'),
    payload: WebhookPayload.describe('The form that was sent.'),
    state: WebhookState,
    reason: z.string().nullable().describe('Why it was given up.'),
    attempts: z.array(WebhookAttempt).describe('Oldest first; the last 50 or so are kept.'),
    attempts_made: z.int().describe('Of this round: a redelivery begins a new one.'),
    next_attempt_at: Timestamp.nullable().describe('null: there is none to come.'),
    created_at: Timestamp,
    expires_at: Timestamp.describe('When this entry and its body are removed; later while it is pending.'),
    trace_id: z.string(),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const WebhookDeliveryDetail = WebhookDelivery.extend({
  body: z.string().describe('The very bytes that are signed and sent, as text.'),
}).meta({ id: 'WebhookDeliveryDetail' });
export type WebhookDeliveryDetail = z.infer<typeof WebhookDeliveryDetail>;

export const WebhookDeliveryList = z
  .strictObject({ deliveries: z.array(WebhookDelivery) })
  .meta({ id: 'WebhookDeliveryList' });
