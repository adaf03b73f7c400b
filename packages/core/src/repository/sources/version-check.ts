/**
 * Which versions of a model in the cache have to be fetched: those that are not there, and those whose files were
 * damaged here. One that the source has changed is an error: a version always means the same bytes.
 */
import type { RemudaError } from '../../errors.js';
import type { RecordedFile } from './fetch-record.js';
import { invalid, isFixed, versionOf, versionsOf } from './source-files.js';

export interface WantedFile {
  /** null only before the file has come. */
  sha256: string | null;
  etag: string | null;
}

interface Compared {
  model: string;
  /** Of the model in the cache. */
  folder: string;
  /** What the source has. */
  wanted: ReadonlyMap<string, WantedFile>;
  /** sha256 of what the cache has. */
  local: ReadonlyMap<string, string>;
  /** What the cache had when it was fetched. */
  recorded: ReadonlyMap<string, RecordedFile>;
}

/** @throws RemudaError source_invalid for a version that the source has changed */
export function staleVersions(compared: Compared): Set<string> {
  const { wanted, local, recorded } = compared;
  const here = new Set(versionsOf(local.keys()));
  const stale = versionsOf(wanted.keys()).filter((version) => {
    if (!here.has(version)) return true;
    const now = filesOf(wanted, version, (file) => file.sha256);
    if (
      firstDifference(
        now,
        filesOf(local, version, (sha256) => sha256),
      ) === undefined
    )
      return false;
    const then = filesOf(recorded, version, (file) => file.sha256);
    // Without a record, only what is here says what the version was.
    const was = then.size > 0 ? then : filesOf(local, version, (sha256) => sha256);
    const path = firstDifference(now, was);
    if (path !== undefined) throw changedFault(compared, version, path, was.get(path), now.get(path));
    return true;
  });
  return new Set(stale);
}

function filesOf<T>(
  files: ReadonlyMap<string, T>,
  version: string,
  sha256: (file: T) => string | null,
): Map<string, string | null> {
  const own = [...files].filter(([path]) => isFixed(path) && versionOf(path) === version);
  return new Map(own.map(([path, file]) => [path, sha256(file)]));
}

function firstDifference(
  one: ReadonlyMap<string, string | null>,
  other: ReadonlyMap<string, string | null>,
): string | undefined {
  return [...new Set([...one.keys(), ...other.keys()])].find((path) => one.get(path) !== other.get(path));
}

function changedFault(
  { model, folder }: Compared,
  version: string,
  path: string,
  was: string | null | undefined,
  now: string | null | undefined,
): RemudaError {
  const told = (sha256: string | null | undefined): string => (sha256 ? `sha256 ${sha256}` : 'no such file');
  return invalid(
    `${model}@${version}: ${path} has changed in the source: expected ${told(was)}, received ${told(now)}; publish it as a new version, or remove ${folder} to fetch it anew`,
    { model, version, path, expected: was ?? null, received: now ?? null },
  );
}
