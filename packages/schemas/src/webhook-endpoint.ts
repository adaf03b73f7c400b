/** Webhook endpoints of a tenant, which are told of all its requests, and the secret that its webhooks are signed with. */
import * as z from 'zod';
import { WebhookEvent, WebhookPayload, WebhookSecret, WebhookUrl } from './webhook.js';

/** Most endpoints of a tenant: each of them is one more delivery for each request. */
export const WEBHOOK_ENDPOINTS_MOST = 20;
/** How long the secret before goes on signing after a rotation, in seconds. */
export const WEBHOOK_OVERLAP_S = { default: 24 * 3600, most: 7 * 24 * 3600 } as const;

const Timestamp = z.iso.datetime().describe('RFC 3339, UTC.');

/** Body of POST /v1/webhooks/endpoints. */
export const WebhookEndpointSpec = z
  .strictObject({
    url: WebhookUrl,
    events: z.array(WebhookEvent).min(1).optional().describe('Which events are sent there; default all.'),
    payload: WebhookPayload.optional().describe('Default full.'),
    key_id: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe('Only for requests that came with this API key; default all of the tenant.'),
  })
  .meta({ id: 'WebhookEndpointSpec' });
export type WebhookEndpointSpec = z.infer<typeof WebhookEndpointSpec>;

export const WebhookEndpoint = z
  .strictObject({
    id: z.string(),
    tenant: z.string(),
    url: z.string(),
    events: z.array(WebhookEvent).nullable().describe('null: all.'),
    payload: WebhookPayload,
    key_id: z.string().nullable().describe('null: requests of every key.'),
    created_at: Timestamp,
    disabled: z
      .strictObject({ at: Timestamp, reason: z.string() })
      .nullable()
      .describe('Nothing is sent there until it is enabled again.'),
  })
  .meta({ id: 'WebhookEndpoint' });
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;

export const WebhookEndpointList = z
  .strictObject({ endpoints: z.array(WebhookEndpoint) })
  .meta({ id: 'WebhookEndpointList' });

/** Body of POST /v1/webhooks/secret:rotate. */
export const WebhookRotation = z
  .strictObject({
    overlap_s: z
      .int()
      .min(0)
      .max(WEBHOOK_OVERLAP_S.most)
      .default(WEBHOOK_OVERLAP_S.default)
      .describe('Seconds for which both secrets sign. 0: the secret before has leaked.'),
  })
  .meta({ id: 'WebhookRotation' });

export const WebhookSigningSecret = z
  .strictObject({
    tenant: z.string(),
    secret: WebhookSecret,
    created_at: Timestamp,
    previous_until: Timestamp.nullable().describe('Until then the secret before signs too; null: none does.'),
  })
  .meta({ id: 'WebhookSigningSecret' });
export type WebhookSigningSecret = z.infer<typeof WebhookSigningSecret>;
