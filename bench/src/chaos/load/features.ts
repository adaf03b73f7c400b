/** What this build of the API can do, and the load therefore asks for. */
import type { ChaosRun } from '../chaos-run.js';
import type { LoadOptions } from './load.js';

export async function features(_run: ChaosRun): Promise<Pick<LoadOptions, 'webhook' | 'idempotency'>> {
  return { idempotency: false };
}
