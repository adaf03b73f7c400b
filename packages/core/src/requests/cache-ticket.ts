/**
 * Whether the answer of a request may be that of another, and which others those are: by digest of version, inputs
 * (datatype, shape, bytes) and parameters, within a tenant unless the model says that its cache is shared. Pure.
 */
import { createHash } from 'node:crypto';
import type { ModelSignature, ResultCacheRule } from '@remuda/schemas';
import { canonicalJson } from '../canonical-json.js';
import type { CacheTicket } from '../store/cache-store.js';
import { hashItem } from './content-hash.js';
import type { Submission } from './submission.js';

/** undefined: it runs in any case. */
export function cacheTicket(
  { options, items, tenant }: Submission,
  { model, version, digest }: ModelSignature,
  rule: ResultCacheRule,
): CacheTicket | undefined {
  // What a version computes is not known without its digest.
  if (options.cache === 'bypass' || digest === '') return undefined;
  const { parameters = null, device = null } = options;
  // Who asks for a device wants the answer of that one: its precision may be another.
  const facts = [rule.shared ? null : tenant, model, version, digest, device, parameters];
  const hash = createHash('sha256').update(canonicalJson(facts));
  for (const { tensors } of items) hashItem(hash, null, tensors);
  return {
    digest: hash.digest('base64url'),
    ttlMs: Math.round(rule.ttl_s * 1000),
    maxBytes: rule.max_bytes,
    shared: rule.shared,
  };
}
