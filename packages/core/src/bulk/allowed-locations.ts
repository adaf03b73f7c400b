/**
 * Which inputs and outputs a job may name when it comes over the network: paths within the folders that the operator has
 * opened, and public addresses. Symbolic links are followed before the question is asked, and the store of uploaded
 * files is never open by path, since each of those belongs to a tenant. What a glob finds, and where a name leads when
 * it is connected, is asked again by who opens it: `isOpen`, and webhooks/connect-lookup.ts.
 */
import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { refuse } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { type AllowedAddresses, isNamed, refusedUrl } from '../webhooks/address-rules.js';

export interface AllowedLocationsOptions {
  /** REMUDA_BULK_PATHS. */
  paths: readonly string[];
  /** REMUDA_FILES. */
  filesFolder: string;
  addresses: AllowedAddresses;
}

type Path = readonly PropertyKey[];

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;
const GLOB = /[*?[\]{}!()]/;
const SETTING = 'REMUDA_BULK_PATHS';

export class AllowedLocations {
  readonly #options: AllowedLocationsOptions;

  constructor(options: AllowedLocationsOptions) {
    this.#options = options;
  }

  /**
   * An input as it may be opened: paths without links, file:// as a path.
   * @param at where it stands in the body
   * @throws InvalidInputError; RemudaError file_not_found
   */
  async input(uri: string, at: Path): Promise<string> {
    const scheme = SCHEME.exec(uri)?.[1]?.toLowerCase();
    if (scheme === 'http' || scheme === 'https') return this.#address(uri, at);
    if (scheme === 's3') return this.#object(uri, at);
    const path = localPath(uri, scheme, 'a path, http(s)://…, s3://bucket/key or file:///…', at);
    return GLOB.test(path) ? this.#glob(path, at) : this.#openPath(path, uri, at);
  }

  /** An output: where it can be written, without links. @throws as input() */
  async output(uri: string, at: Path): Promise<string> {
    const scheme = SCHEME.exec(uri)?.[1]?.toLowerCase();
    if (scheme === 's3') return this.#object(uri, at);
    const path = localPath(uri, scheme, 'a path, s3://bucket/key or file:///…', at);
    if (path.endsWith(sep)) refuse(at, 'the path of a file', `the folder ${uri}`, 'invalid_request');
    const folder = await this.#openPath(dirname(path), uri, at);
    const target = join(folder, basename(path));
    const found = await lstat(target).catch(() => undefined);
    if (found && !found.isFile())
      refuse(at, 'the path of a plain file', `a link or folder: ${uri}`, 'invalid_request');
    return target;
  }

  /** Whether a path, without links in it, may be read or written. For what a glob or a list has found. */
  async isOpen(real: string): Promise<boolean> {
    if (isWithin(real, await realOrGiven(this.#options.filesFolder))) return false;
    for (const root of this.#options.paths) if (isWithin(real, await realOrGiven(root))) return true;
    return false;
  }

  #address(uri: string, at: Path): string {
    const url = URL.canParse(uri) ? new URL(uri) : refuse(at, 'a URL', uri, 'invalid_request');
    const reason = refusedUrl(url, this.#options.addresses);
    if (reason === undefined) return uri;
    return refuse(
      at,
      'an address that is public, or allowed by REMUDA_WEBHOOK_ALLOW',
      reason,
      'invalid_request',
    );
  }

  /** Another server than that of the operator is connected without a look at what its name leads to: only by name. */
  #object(uri: string, at: Path): string {
    if (!/^s3:\/\/[^/]+\/.+/i.test(uri)) return refuse(at, 's3://bucket/key', uri, 'invalid_request');
    const query = uri.indexOf('?');
    for (const endpoint of new URLSearchParams(query < 0 ? '' : uri.slice(query)).getAll('endpoint'))
      if (!URL.canParse(endpoint) || !isNamed(new URL(endpoint), this.#options.addresses))
        refuse(at, 'an endpoint that REMUDA_WEBHOOK_ALLOW names', endpoint, 'invalid_request');
    return uri;
  }

  /** What stands before the first sign of a glob has to be open; the rest may not lead out of it. */
  async #glob(path: string, at: Path): Promise<string> {
    const parts = path.split(sep);
    const first = parts.findIndex((part) => GLOB.test(part));
    const rest = parts.slice(first).join(sep);
    if (rest.includes('..')) refuse(at, 'a glob without ".."', path, 'invalid_request');
    // A name may hold such signs, too.
    if (await lstat(path).catch(() => undefined)) return this.#openPath(path, path, at);
    return join(await this.#openPath(parts.slice(0, first).join(sep) || sep, path, at), rest);
  }

  /** The words are looked at first, so that nobody learns what there is elsewhere. */
  async #openPath(path: string, given: string, at: Path): Promise<string> {
    const { paths } = this.#options;
    if (paths.length === 0)
      refuse(
        at,
        'a file_id, or a URL: this server opens no folder (setting REMUDA_BULK_PATHS)',
        given,
        'invalid_request',
      );
    const plain = normalize(path);
    const lexically = await Promise.all(
      paths.map(async (root) => [normalize(root), await realOrGiven(root)]),
    );
    if (!lexically.flat().some((root) => isWithin(plain, root))) refuseClosed(given, at);
    const real = await realpath(plain).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' || error.code === 'ENOTDIR' ? notThere(given, at) : error;
    });
    return (await this.isOpen(real)) ? real : refuseClosed(given, at);
  }
}

function refuseClosed(given: string, at: Path): never {
  refuse(
    at,
    `a path within the folders that this server opens (setting ${SETTING})`,
    given,
    'invalid_request',
  );
}

function notThere(given: string, at: Path): RemudaError {
  return new RemudaError('file_not_found', `${at.join('.')}: ${given} is not there, as this server sees it`);
}

function localPath(uri: string, scheme: string | undefined, expected: string, at: Path): string {
  if (scheme === 'file') return pathOfUrl(uri, at);
  if (scheme !== undefined) refuse(at, expected, uri, 'invalid_request');
  // Where a server was started is no business of its callers.
  if (!isAbsolute(uri)) refuse(at, `${expected}, from the root`, uri, 'invalid_request');
  if (uri.includes('\0')) refuse(at, expected, 'a path with a NUL', 'invalid_request');
  return uri;
}

function pathOfUrl(uri: string, at: Path): string {
  try {
    return fileURLToPath(uri);
  } catch {
    return refuse(at, 'file:///path', uri, 'invalid_request');
  }
}

function isWithin(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === '' || (!isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`));
}

function realOrGiven(path: string): Promise<string> {
  return realpath(path).catch(() => normalize(path));
}
