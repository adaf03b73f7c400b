/**
 * RateLimit and RateLimit-Policy, the fields of draft-ietf-httpapi-ratelimit-headers-10: structured-field lists whose
 * items are named after the policies. Every limit of the API speaks through here, so that one answer can tell of several.
 */
import type { Quota } from '@remuda/core/requests/quota';
import type { FastifyReply } from 'fastify';

/** "queue-requests";q=50000;qu="concurrent-requests" */
export function policyItem({ policy, limit, unit, windowS }: Quota): string {
  const item = `"${policy}";q=${Math.max(0, Math.floor(limit))}`;
  const withUnit = unit === 'requests' ? item : `${item};qu="${unit}"`;
  return windowS === undefined ? withUnit : `${withUnit};w=${Math.max(1, Math.round(windowS))}`;
}

/** "queue-requests";r=0;t=3 */
export function limitItem({ policy, remaining, resetS }: Quota): string {
  const item = `"${policy}";r=${Math.max(0, Math.floor(remaining))}`;
  return resetS === undefined ? item : `${item};t=${Math.max(0, Math.ceil(resetS))}`;
}

/** Adds the quotas to what the answer says already: the rate of a key and the room in a queue come from two places. */
export function addRateLimitFields(reply: FastifyReply, quotas: readonly Quota[]): void {
  if (quotas.length === 0) return;
  append(reply, 'ratelimit-policy', quotas.map(policyItem));
  append(reply, 'ratelimit', quotas.map(limitItem));
}

/** Names for the member `violated-policies` of a problem. */
export function violatedPolicies(quotas: readonly Quota[]): string[] {
  return quotas.filter(({ violated }) => violated).map(({ policy }) => policy);
}

function append(reply: FastifyReply, field: string, items: readonly string[]): void {
  const before = reply.getHeader(field);
  const text = items.join(', ');
  reply.header(field, before === undefined ? text : `${String(before)}, ${text}`);
}
