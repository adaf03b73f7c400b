/** A dead letter as people see it. */
import type { DeadLetter, ItemError } from '@remuda/schemas';
import { classOf } from '../retries/error-classes.js';
import type { StoredLetter } from '../store/letter-store.js';
import { iso } from './present-request.js';

/** @param keptMs how long letters are kept */
export function presentLetter(letter: StoredLetter, keptMs: number): DeadLetter {
  const { requestId, document, errors, diedAt } = letter;
  // A letter has at least one item: what no item is given up for makes none.
  const first = (errors[0] as { error: ItemError }).error;
  return {
    request_id: requestId,
    model: document.model,
    version: document.version,
    tenant: document.tenant,
    device_class: document.route.device_class,
    class: classOf(first.code),
    code: first.code,
    reason: first.message,
    attempts: letter.attempts,
    items: errors.map(({ item, error }) => ({
      index: item,
      id: document.itemIds?.[item] ?? null,
      class: classOf(error.code),
      error,
    })),
    items_total: letter.items,
    input_bytes: letter.inputBytes,
    metadata: document.metadata,
    trace_id: document.traceId,
    created_at: iso(letter.acceptedAt),
    died_at: iso(diedAt),
    expires_at: iso(diedAt + keptMs),
    redriven_as: letter.redrivenAs,
  };
}
