/**
 * What a limit says to the caller whom it concerns: how much it allows, how much is left, and whether this call went
 * over it. Limits hand these over in RemudaError.details.quotas when they refuse, or beside an acceptance; the API
 * writes them as RateLimit fields (apps/producer-api/src/rate-limit-fields.ts).
 */

/** requests, concurrent-requests and content-bytes are those of the draft; rows and seconds (of wait) are our own. */
export type QuotaUnit = 'requests' | 'concurrent-requests' | 'content-bytes' | 'rows' | 'seconds';

export interface Quota {
  /** Lower-case letters, digits and "-": names the policy in the fields and in `violated-policies`. */
  policy: string;
  /** Most that is allowed: within the window, or, without one, at the same time. */
  limit: number;
  unit: QuotaUnit;
  /** Seconds; absent: what counts is what has not ended, not what came within a time. */
  windowS?: number;
  /** What is left of it now; never below 0. */
  remaining: number;
  /** Seconds until more of it is there, where that is known. */
  resetS?: number;
  /** This call was refused because of it. */
  violated: boolean;
}

/** The quotas that the details of an error carry. */
export function quotasOf(details: Readonly<Record<string, unknown>>): readonly Quota[] {
  return Array.isArray(details.quotas) ? (details.quotas as Quota[]) : [];
}
