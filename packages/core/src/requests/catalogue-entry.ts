/**
 * One model as the catalogue sees it: what lies in the local repository together with what workers have published and
 * name in their heartbeats. Kept and brought up to date by catalogue.ts.
 */
import { RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { type RepositoryModel, toModelSource } from '../repository/manifests.js';
import { nearNames } from '../repository/near-names.js';
import { fieldOf, type Published } from './published-signatures.js';

export interface CatalogueEntry {
  name: string;
  local: RepositoryModel | null;
  /** By version. */
  published: ReadonlyMap<string, Published>;
  /** Lowest first. */
  versions: string[];
  /** The newest that was ever served, else the newest whose files are all here. */
  defaultVersion: string | null;
}

export interface EntryParts {
  local: RepositoryModel | null;
  published: Map<string, Published>;
  /** Versions that live workers name, loaded or not. */
  named(): string[];
}

export function entryOf(name: string, { local, published, named }: EntryParts): CatalogueEntry {
  const versions = offeredOf({ local, published, named }).sort((a, b) => Number(a) - Number(b));
  // A new version takes traffic once a worker has it; before that the highest one that had been served does.
  const served = versions.findLast((version) => published.get(version)?.by === 'worker');
  return { name, local, published, versions, defaultVersion: served ?? local?.defaultVersion ?? null };
}

/**
 * A version that was taken out of the repository is not offered any more, though its signature is still stored. Where
 * model.yaml is faulty nothing says what lies there: what the workers have loaded goes on serving.
 */
function offeredOf({ local, published, named }: EntryParts): string[] {
  if (local?.config) return local.versions.map(({ version }) => version);
  const known = local ? named() : [...published.keys(), ...named()];
  return [...new Set(known)].filter((version) => version !== '');
}

/** A file that is missing or faulty is trouble of this server, not of the request. */
export function sourceOf(local: RepositoryModel, version: string): ModelSource {
  try {
    return toModelSource(local, version, 'cpu');
  } catch (error) {
    throw unavailable(error instanceof Error ? error.message : String(error), error);
  }
}

export function failureKey(model: string, version: string, digest: string): string {
  return `${fieldOf(model, version)}/${digest}`;
}

export function unavailable(message: string, cause?: unknown): RemudaError {
  return new RemudaError('signature_unavailable', message, {}, { cause });
}

export function noSuchModel(model: string, entries: readonly CatalogueEntry[]): RemudaError {
  const suggestions = nearNames(
    model,
    entries.map(({ name }) => name),
  );
  const hint = suggestions.length > 0 ? `; did you mean ${suggestions.join(' or ')}?` : '';
  return new RemudaError('model_not_found', `there is no model "${model}"${hint}`, { suggestions });
}
