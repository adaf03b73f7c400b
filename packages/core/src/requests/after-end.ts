/** Everything that is done after a request has ended, in API and worker processes alike. Run by aftermath.ts. */
import type { AftermathHandler } from './aftermath.js';

export interface AfterEndDeps {
  /** Keeps the answers of models with a result cache, and gives them to identical requests. */
  coalescing: AftermathHandler;
}

export function afterEnd({ coalescing }: AfterEndDeps): AftermathHandler[] {
  return [coalescing];
}
