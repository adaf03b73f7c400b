/** Faults of models and versions of the repository that have no slot to tell of them, as the heartbeat says them. */
import type { RepositoryModel } from '@remuda/core/repository/manifests';
import type { LoadedModel } from '@remuda/schemas';
import { blankState } from './slot-report.js';
import type { SlotTable } from './slot-table.js';

/** One entry for each version, or for the model as a whole (version ''), with its first fault. */
export function faultsOf({ name, config, problems }: RepositoryModel, slots: SlotTable): LoadedModel[] {
  const told = new Set(slots.of(name).map(({ version }) => version));
  const faults = new Map<string, LoadedModel>();
  for (const { kind, version, message } of problems) {
    const key = version ?? '';
    if ((config !== null && version === null) || told.has(key) || faults.has(key)) continue;
    const state = kind === 'fetching' ? 'loading' : 'failed';
    faults.set(key, { ...blankState(name, key, 'cpu'), state, reason: message });
  }
  return [...faults.values()];
}
