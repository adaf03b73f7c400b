/** What a version on a device needs next, from what is wanted and what is there. Pure; version-slot.ts does it. */
import { configChange } from '@remuda/core/models/effective-config';
import type { PlannedVersion } from '@remuda/core/models/version-plan';
import type { HarnessConfig } from '@remuda/schemas';

interface Content {
  digest: string;
  config: HarnessConfig;
}

export interface SlotFacts {
  want: PlannedVersion['want'];
  /** What is loaded; null: nothing. */
  loaded: Content | null;
  /** What lies in the repository, with the settings that are wanted; null: gone, or faulty. */
  source: Content | null;
  /** It failed as it is now, and the pause before the next try has not passed. */
  blocked: boolean;
  /** It was unloaded to make room: a request brings it back. */
  evicted: boolean;
  /** For how long no request has used it. */
  unusedMs: number;
  /** After that long a version that is wanted no more goes. */
  idleMs: number;
}

export type SlotStep =
  | { do: 'nothing' | 'load' | 'reload' | 'scale' | 'configure' }
  | { do: 'unload'; because: 'off' | 'idle' };

export function nextStep({ want, loaded, source, blocked, evicted, ...facts }: SlotFacts): SlotStep {
  if (loaded === null) {
    return { do: want === 'load' && source !== null && !blocked && !evicted ? 'load' : 'nothing' };
  }
  if (want === 'off') return { do: 'unload', because: 'off' };
  if (want === 'idle' && facts.unusedMs >= facts.idleMs) return { do: 'unload', because: 'idle' };
  // A version whose files went away, or that failed to become what is wanted, serves as it is.
  if (source === null || blocked) return { do: 'nothing' };
  return { do: changeOf(loaded, source) };
}

function changeOf(loaded: Content, source: Content): 'nothing' | 'reload' | 'scale' | 'configure' {
  if (loaded.digest !== source.digest) return 'reload';
  const { kind } = configChange(loaded.config, source.config);
  return kind === 'none' ? 'nothing' : kind === 'live' ? 'configure' : kind;
}
