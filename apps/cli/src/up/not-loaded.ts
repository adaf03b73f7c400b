/** Models that the workers of this `up` could not load: warnings once it is ready, which it is all the same. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadedModel, WorkerHeartbeat } from '@remuda/schemas';
import type { ApiClient } from '../api/api-client.js';
import { plural } from '../terminal/figures.js';

export type NotLoaded = Pick<LoadedModel, 'model' | 'version' | 'reason'> & {
  /** Another version of it is ready, or the same one on another device. */
  served: boolean;
};

/** Longest time until the API has seen the heartbeats of workers that are ready. */
const SEEN_MS = 3_000;
const POLL_MS = 100;
const MOST_CHARACTERS = 140;

/** @param pids of the workers; what the API does not answer is no reason to fail */
export async function findNotLoaded(
  api: Pick<ApiClient, 'fleet' | 'stop'>,
  pids: readonly number[],
  patienceMs = SEEN_MS,
): Promise<NotLoaded[]> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const seen = await api.fleet().then(
      ({ workers }) => workers.filter(({ pid, state }) => pids.includes(pid) && state === 'ready'),
      () => [],
    );
    const isOver = api.stop?.aborted || Date.now() >= deadline;
    if (isOver || seen.length >= pids.length) return failuresOf(seen);
    await sleep(POLL_MS);
  }
}

/** Each version once, however many workers and devices it failed on. */
function failuresOf(workers: readonly WorkerHeartbeat[]): NotLoaded[] {
  const loaded = workers.flatMap(({ models }) => models);
  const ready = new Set(loaded.filter(({ state }) => state === 'ready').map(({ model }) => model));
  const found = new Map<string, NotLoaded>();
  for (const { model, version, state, reason } of loaded) {
    if (state !== 'failed') continue;
    found.set(`${model}@${version}`, { model, version, reason, served: ready.has(model) });
  }
  return [...found.values()];
}

/** "2 models could not be loaded: broken (…), noyaml (…)"; undefined where there is nothing to say. */
export function notLoadedText(failures: readonly NotLoaded[]): string | undefined {
  if (failures.length === 0) return undefined;
  const each = failures.map((failure) => `${nameOf(failure)} (${reasonText(failure)})`);
  return `${plural(failures.length, 'model')} could not be loaded: ${each.join(', ')}`;
}

/** With its version where others of the model are served. */
function nameOf({ model, version, served }: NotLoaded): string {
  return served ? `${model}@${version}` : model;
}

/** In one line, without the name that stands before it. */
function reasonText({ model, version, reason }: NotLoaded): string {
  const line = (reason ?? 'failed').replace(`${model}@${version}: `, '').replace(/\s+/g, ' ');
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}
