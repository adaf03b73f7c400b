/** Signatures of Standard Webhooks 1.0: HMAC-SHA256 over id, timestamp and body, one for each secret that is valid. */
import { createHmac, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const PREFIX = 'whsec_';

export function newWebhookSecret(): string {
  return `${PREFIX}${randomBytes(KEY_BYTES).toString('base64')}`;
}

/**
 * The value of webhook-signature.
 * @param timestamp of the attempt, Unix seconds
 * @param secrets newest first; a receiver needs to know one of them
 */
export function signatureHeader(
  id: string,
  timestamp: number,
  body: string,
  secrets: readonly string[],
): string {
  return secrets.map((secret) => `v1,${signature(id, timestamp, body, secret)}`).join(' ');
}

function signature(id: string, timestamp: number, body: string, secret: string): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
}
