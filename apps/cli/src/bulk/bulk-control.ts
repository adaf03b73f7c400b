/**
 * What following a bulk job needs of whoever runs it: an API (api-bulk.ts) or this machine (local-bulk.ts). Every call
 * may be made again: none does anything twice.
 */
import type { BulkJob, BulkJobCreateInput } from '@remuda/schemas';

export type BulkAction = 'pause' | 'resume' | 'cancel' | 'retry-failed';

export interface BulkControl {
  /** @param onceKey your name for this call: sent again with the same content, it makes no second job */
  create(wanted: BulkJobCreateInput, onceKey?: string): Promise<BulkJob>;
  get(id: string): Promise<BulkJob>;
  act(id: string, action: BulkAction): Promise<BulkJob>;
}
