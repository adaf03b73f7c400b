/** What is wanted of a version on a device: the converger says it, the slot follows. */
import type { ModelSource } from '@remuda/core/harness/harness';
import type { PlannedVersion } from '@remuda/core/models/version-plan';
import { stableJson } from '@remuda/core/repository/version-digest';
import type { AffinityRule } from '@remuda/schemas';

export interface SlotAim {
  want: PlannedVersion['want'];
  /** Why. */
  reason: string;
  /** What is to be loaded, with the settings that are wanted; null: its files are gone or faulty. */
  source: ModelSource | null;
  /** The rule of the model that places it here; null: none does. */
  rule: AffinityRule | null;
  /** Why there is no source. */
  problem: string | null;
  /** Digest that was registered for the version, where one was. */
  registeredDigest: string | undefined;
}

export const NOTHING_WANTED: SlotAim = {
  want: 'off',
  reason: '',
  source: null,
  rule: null,
  problem: null,
  registeredDigest: undefined,
};

/** Files and settings in one text: what a failure or a measurement is about; with another stamp it counts no more. */
export function stampOf({ source, registeredDigest }: SlotAim): string {
  return source ? `${source.digest} ${registeredDigest} ${stableJson(source.config)}` : '';
}
