/** Why a job cannot go on, as its owner is told. */
import type { RemudaError } from '../../errors.js';
import type { BulkFault } from '../job-record.js';
import { InputFaults } from './validating.js';

const SHUT: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']);

/** The folder is not one that this process may work in: that does not pass by beginning anew. */
export function isShut(error: unknown): boolean {
  return SHUT.has((error as NodeJS.ErrnoException | null)?.code);
}

export function faultsOf(error: RemudaError): BulkFault[] {
  if (error instanceof InputFaults) return error.faults;
  return [{ code: error.code, message: error.message, param: null, line: null }];
}

/** Of an uploaded file people know the id, and nobody outside is told where the store lies. */
export function withoutPath<T>(told: T, fileId: string | null): T {
  if (fileId === null) return told;
  const path = new RegExp(`/[^\\s"]*/${fileId}`, 'g');
  return JSON.parse(JSON.stringify(told).replace(path, fileId)) as T;
}
