/** What each command line of `remuda models …` asks of the admin API. Pure. */
import { adminPath, type ModelEdit } from '../api/api-client.js';
import { usageError } from '../cli-error.js';

export function loadEdit(model: string, version: string | undefined): ModelEdit {
  return { method: 'POST', path: `${adminPath(model)}:load`, body: version === undefined ? {} : { version } };
}

export function unloadEdit(model: string, version: string | undefined): ModelEdit {
  return {
    method: 'POST',
    path: `${adminPath(model)}:unload`,
    body: version === undefined ? {} : { version },
  };
}

export function scaleEdit(model: string, instances: number): ModelEdit {
  return { method: 'POST', path: `${adminPath(model)}:scale`, body: { instances } };
}

/** @param version undefined only with `remove` */
export function aliasEdit(
  model: string,
  alias: string,
  version: string | undefined,
  remove = false,
): ModelEdit {
  const path = `${adminPath(model)}/aliases/${encodeURIComponent(alias)}`;
  if (remove === (version !== undefined))
    throw usageError('Give the version that the alias leads to, or --remove.');
  return remove ? { method: 'DELETE', path } : { method: 'PUT', path, body: { version } };
}

export interface SplitOptions {
  stable?: string;
  /** Taken back by itself when it does worse. */
  rollback?: boolean;
  minRequests?: number;
  end?: boolean;
}

/** @param shares VERSION=PER_CENT; the stable side, which must be given with them, gets the rest where it has none */
export function splitEdit(model: string, shares: readonly string[], options: SplitOptions): ModelEdit {
  const path = `${adminPath(model)}/split`;
  const { stable, rollback = true, minRequests, end = false } = options;
  if (end === shares.length > 0) throw usageError('Give shares such as 2=10, or --end.');
  if (end) return { method: 'DELETE', path };
  if (stable === undefined) throw usageError('Say with --stable which version the others are compared with.');
  const weights = sharesOf(shares);
  const given = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  const body = {
    stable,
    weights: { [stable]: Math.round((100 - given) * 1e6) / 1e6, ...weights },
    rollback: rollback ? { ...(minRequests !== undefined && { min_requests: minRequests }) } : null,
  };
  return { method: 'PUT', path, body };
}

/** Per cent by version or alias. @throws CliError */
export function sharesOf(shares: readonly string[]): Record<string, number> {
  const pairs = shares.map(shareOf);
  const weights = Object.fromEntries(pairs);
  if (Object.keys(weights).length < pairs.length) throw usageError('Give each version one share.');
  return weights;
}

function shareOf(text: string): [string, number] {
  const [, ref, weight] = /^([a-z0-9_-]+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (ref === undefined) throw usageError(`"${text}" is no share: expected VERSION=PER_CENT, such as 2=10.`);
  return [ref, Number(weight)];
}

export interface ShadowOptions {
  sample?: number;
  end?: boolean;
}

export function shadowEdit(
  model: string,
  version: string | undefined,
  { sample, end = false }: ShadowOptions,
): ModelEdit {
  const path = `${adminPath(model)}/shadow`;
  if (end === (version !== undefined)) throw usageError('Give the version that runs copies, or --end.');
  if (end) return { method: 'DELETE', path };
  return { method: 'PUT', path, body: { version, ...(sample !== undefined && { sample }) } };
}

export interface RegisterOptions {
  loadMode?: string;
  versionPolicy?: string;
  pinned?: boolean;
  instances?: number;
}

export function registerEdit(name: string, source: string | undefined, options: RegisterOptions): ModelEdit {
  const { loadMode, versionPolicy, pinned, instances } = options;
  const body = {
    name,
    source,
    load_mode: loadMode,
    version_policy: versionPolicy === undefined ? undefined : policyOf(versionPolicy),
    pinned,
    instances,
  };
  return { method: 'POST', path: '/v1/admin/models', body };
}

export function unregisterEdit(model: string): ModelEdit {
  return { method: 'DELETE', path: adminPath(model) };
}

/** latest, all, latest:2, only:1,3 */
function policyOf(text: string): unknown {
  if (text === 'latest' || text === 'all') return text;
  const [, kind, rest = ''] = /^(latest|only):(\d+(?:,\d+)*)$/.exec(text) ?? [];
  if (kind === 'latest' && !rest.includes(',')) return { latest: Number(rest) };
  if (kind === 'only') return { only: rest.split(',') };
  throw usageError(`"${text}" is no version policy: expected latest, all, latest:2 or only:1,3.`);
}
