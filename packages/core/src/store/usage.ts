/**
 * How much has not ended, by partition and by tenant, as scripts/usage.lua counts it: in the same step in which a
 * request is accepted, moved, withdrawn or ended, so no crash can come between. What limits look at (requests/admission.ts).
 */
import type { Acceptance } from './request-store.js';

export interface Usage {
  requests: number;
  rows: number;
  /** Of inputs, as they are stored. */
  bytes: number;
  /** Have ended since the first of an unbroken row came: rises until nothing is left, then begins at 0. */
  ended: number;
  rowsEnded: number;
}

export const NO_USAGE: Readonly<Usage> = { requests: 0, rows: 0, bytes: 0, ended: 0, rowsEnded: 0 };

/** Field of a partition in the hash of usage. */
export function partitionField(model: string, deviceClass: string, lane: string): string {
  return `p:${model}/${deviceClass}/${lane}`;
}

export function tenantField(tenant: string): string {
  return `t:${tenant}`;
}

/** What a request counts as, for its record: a shadow copy takes room in a queue, but none of its tenant's. */
export function useOf({ document, payloads }: Pick<Acceptance, 'document' | 'payloads'>): string {
  const { model, route, rows, tenant, shadowOf } = document;
  const bytes = payloads.reduce((sum, { length }) => sum + length, 0);
  const counted = `${rows} ${bytes} ${model}/${route.device_class}/${route.lane}`;
  return shadowOf === undefined ? `${counted} ${tenant}` : counted;
}

/** @param text of a field; null or '': nothing is left */
export function parseUsage(text: string | null | undefined): Usage {
  if (!text) return NO_USAGE;
  const [requests = 0, rows = 0, bytes = 0, ended = 0, rowsEnded = 0] = text.split(' ').map(Number);
  return { requests, rows, bytes, ended, rowsEnded };
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    requests: a.requests + b.requests,
    rows: a.rows + b.rows,
    bytes: a.bytes + b.bytes,
    ended: a.ended + b.ended,
    rowsEnded: a.rowsEnded + b.rowsEnded,
  };
}

/** The hashes of several shards as one. */
export function sumUsage(shards: readonly Record<string, string>[]): Map<string, Usage> {
  const sums = new Map<string, Usage>();
  for (const fields of shards) {
    for (const [field, text] of Object.entries(fields))
      sums.set(field, addUsage(sums.get(field) ?? NO_USAGE, parseUsage(text)));
  }
  return sums;
}
