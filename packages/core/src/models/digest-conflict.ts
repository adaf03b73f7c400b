/**
 * Two workers with different files for one version would give different answers to the same request. A worker that
 * finds another serving the version from other files does not serve its own. Pure.
 */
import type { WorkerHeartbeat } from '@remuda/schemas';

export interface DigestClaim {
  workerId: string;
  model: string;
  version: string;
  digest: string;
  /** Where its files lie, for the message. */
  folder: string;
}

const LOADING = ['loading', 'warming', 'verifying'];

/**
 * Why `claim` must not serve; null: it may. Goes before it: who has the version ready, and of those that are loading
 * it at the same time the one whose id is lower.
 */
export function digestConflict(claim: DigestClaim, workers: readonly WorkerHeartbeat[]): string | null {
  for (const worker of workers) {
    if (worker.worker_id === claim.workerId) continue;
    for (const { model, version, digest, state } of worker.models) {
      if (model !== claim.model || version !== claim.version) continue;
      if (digest === claim.digest || digest === '') continue;
      const first = LOADING.includes(state) && worker.worker_id < claim.workerId;
      if (state === 'ready' || first) return conflictMessage(claim, worker, digest);
    }
  }
  return null;
}

function conflictMessage(
  { workerId, model, version, digest, folder }: DigestClaim,
  other: WorkerHeartbeat,
  otherDigest: string,
): string {
  return (
    `${model}@${version}: worker ${workerId} has files of digest ${short(digest)} in ${folder}, ` +
    `worker ${other.worker_id} on ${other.host} serves digest ${short(otherDigest)}: ` +
    'a version has one content; give the changed files a new version number'
  );
}

/** The digest that was given for the version with the admin API, held against the files; null: it fits. */
export function wrongDigest({ model, version, digest, folder }: DigestClaim, given?: string): string | null {
  if (given === undefined || given === digest) return null;
  return (
    `${model}@${version}: the files in ${folder} have digest ${short(digest)}, registered is ${short(given)}: ` +
    'put the registered files there, or give these a new version number'
  );
}

function short(digest: string): string {
  return digest.slice(0, 16);
}
