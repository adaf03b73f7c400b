/** Everything that is done after a request has ended, in API and worker processes alike. Run by aftermath.ts. */
import type { AftermathHandler } from './aftermath.js';

export function afterEnd(): AftermathHandler[] {
  return [];
}
