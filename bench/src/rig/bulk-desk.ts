/** Bulk jobs of a fleet, created and asked after as the API does it, but without HTTP between. */

import type { Redis } from '@remuda/core/store/redis';
import type { BulkJob, BulkJobCreateInput } from '@remuda/schemas';

export interface BulkDesk {
  create(wanted: BulkJobCreateInput): Promise<BulkJob>;
  get(id: string): Promise<BulkJob>;
  cancel(id: string): Promise<BulkJob>;
  close(): Promise<void>;
}

export interface BulkPlace {
  keyPrefix: string;
  /** REMUDA_FILES of the workers. */
  files: string;
}

export function openBulkDesk(_redis: Redis, _place: BulkPlace): BulkDesk {
  throw new Error('not yet');
}
