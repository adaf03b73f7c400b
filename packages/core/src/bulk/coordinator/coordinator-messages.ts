/** What a worker and the coordinators that it keeps say to each other. */
import type { RequestUseCaseDeps } from '../../requests/use-cases.js';
import type { Keyspace } from '../../store/keys.js';
import type { CoordinatorEnd } from './coordinator.js';
import type { CoordinatorCounts } from './work-meter.js';

export interface CoordinatorInit {
  jobId: string;
  redisUrl: string;
  keyspace: Keyspace;
  /** REMUDA_FILES, absolute. */
  filesFolder: string;
  modelsFolder: string;
  priorityStepRows: number;
  limits?: RequestUseCaseDeps['limits'];
  /** Folders that references in lists may lead to; null: anywhere. */
  roots: string[] | null;
  /** Addresses beside the public ones that may be fetched from, as in REMUDA_WEBHOOK_ALLOW; null: any. */
  allowed: string | null;
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  logPretty: boolean;
}

export type ToCoordinator = { type: 'init'; init: CoordinatorInit } | { type: 'leave' };

export type FromCoordinator =
  | { type: 'counts'; counts: CoordinatorCounts }
  | { type: 'done'; end: CoordinatorEnd }
  | { type: 'failed'; message: string };
