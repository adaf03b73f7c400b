/**
 * Webhooks, as Standard Webhooks 1.0 has them: what a request may ask for, and what is sent when it ends.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import * as z from 'zod';
import { decodeBase64 } from './base64.js';

export const WEBHOOK_EVENTS = [
  'request.succeeded',
  'request.partial',
  'request.failed',
  'request.cancelled',
  'request.expired',
  'batch.completed',
  'batch.failed',
  'batch.cancelled',
] as const;
export const WebhookEvent = z.enum(WEBHOOK_EVENTS).describe('What has happened.');
export type WebhookEvent = z.infer<typeof WebhookEvent>;

/** Bytes of the key that a secret holds. */
export const WEBHOOK_SECRET_BYTES = { least: 24, most: 64 } as const;

export const WebhookSecret = z
  .string()
  .refine(isWebhookSecret, {
    error: 'whsec_ and base64 of 24 to 64 bytes',
  })
  .describe('Signs what is sent: whsec_ and base64 of 24 to 64 random bytes.');

/** The URL-safe alphabet is refused: libraries of the standard do not read it, so nobody could verify. */
const SECRET_TEXT = /^whsec_[A-Za-z0-9+/]+=*$/;

function isWebhookSecret(text: string): boolean {
  if (!SECRET_TEXT.test(text)) return false;
  try {
    const { length } = decodeBase64(text.slice('whsec_'.length), []);
    return length >= WEBHOOK_SECRET_BYTES.least && length <= WEBHOOK_SECRET_BYTES.most;
  } catch {
    return false;
  }
}

export const WebhookUrl = z
  .string()
  .max(2048)
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    error: 'an http:// or https:// URL',
  })
  .refine((text) => !URL.canParse(text) || canBeReached(new URL(text)), {
    error: 'a URL with a host name that can exist, and with a port other than 0',
  })
  .refine((text) => !URL.canParse(text) || (new URL(text).username === '' && new URL(text).password === ''), {
    error: 'a URL without user name and password',
  })
  .describe('Where it is sent by POST.');

/** What no name server could ever be asked for: labels that are empty or over 63 characters, names over 253. */
function canBeReached({ hostname, port }: URL): boolean {
  if (port === '0') return false;
  if (hostname.startsWith('[')) return true;
  const name = hostname.replace(/\.$/, '');
  return name.length <= 253 && name.split('.').every((label) => label.length > 0 && label.length <= 63);
}

export const WebhookPayload = z
  .enum(['full', 'thin'])
  .describe('full: the record with its result. thin: the record without outputs; fetch the result.');
export type WebhookPayload = z.infer<typeof WebhookPayload>;

/** What a request says of its webhook: a URL, or a URL with what is wanted of it. */
export const WebhookOption = z
  .union([
    WebhookUrl,
    z.strictObject({
      url: WebhookUrl,
      events: z.array(WebhookEvent).min(1).optional().describe('Default: however it ends.'),
      payload: WebhookPayload.optional().describe('Default full.'),
      secret: WebhookSecret.optional().describe('Default: the signing secret of the tenant.'),
    }),
  ])
  .describe('Told once the request has ended; at least once, so compare webhook-id.')
  .meta({ id: 'WebhookOption' });
export type WebhookOption = z.infer<typeof WebhookOption>;
