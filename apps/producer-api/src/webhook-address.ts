/**
 * Whether a webhook may be sent to the address that is asked for, as far as its text tells. A name passes here: what it
 * leads to is checked whenever it is connected (core/webhooks/connect-lookup.ts).
 */
import { type AllowedAddresses, refusedUrl } from '@remuda/core/webhooks/address-rules';
import { refuse, type WebhookOption } from '@remuda/schemas';

/** @throws InvalidInputError webhook_refused */
export function checkWebhook(
  webhook: WebhookOption | undefined,
  allowed: AllowedAddresses,
  path: readonly PropertyKey[],
): void {
  if (webhook === undefined) return;
  if (typeof webhook === 'string') checkAddress(webhook, allowed, path);
  else checkAddress(webhook.url, allowed, [...path, 'url']);
}

/** @throws InvalidInputError webhook_refused */
export function checkAddress(url: string, allowed: AllowedAddresses, path: readonly PropertyKey[]): void {
  const reason = refusedUrl(new URL(url), allowed);
  if (reason !== undefined)
    refuse(path, 'an address that is reachable from outside', reason, 'webhook_refused');
}
