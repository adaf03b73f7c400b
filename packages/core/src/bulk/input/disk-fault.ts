/** What a disk refuses to take, as an error that says what can be done. */
import { RemudaError } from '../../errors.js';

/** RemudaErrors as they are. */
export function diskFault(path: string, error: unknown): unknown {
  if (error instanceof RemudaError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new RemudaError(
      'disk_full',
      `${path} cannot be written: ${message}; make room on the disk and resume`,
      {},
      { cause: error },
    );
  if (code === undefined) return error;
  return new RemudaError(
    'internal',
    `${path} cannot be written: ${message}; check the folder and who may write to it`,
    {},
    { cause: error },
  );
}
