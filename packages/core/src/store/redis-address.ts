/**
 * Where Redis is, read from one URL: a single server, one watched by Sentinels, or a Cluster. Whatever a connection needs
 * to know stands in that URL, so that it is one string from the settings to the runner.
 *
 *     redis://[user:password@]host[:port][/database]
 *     unix:///path[?db=N&username=…&password=…]
 *     redis+sentinel://[user:password@]host[:port],host[:port]/master[/database]
 *     redis+cluster://[user:password@]host[:port],host[:port]
 *
 * rediss in place of redis: over TLS (with Sentinel, to the Sentinels too). Behind a "?": tls_ca, tls_cert, tls_key (files
 * in PEM), tls_servername; for Sentinels with a login of their own sentinel_username, sentinel_password.
 */
import { readFileSync } from 'node:fs';

export interface Endpoint {
  host: string;
  port: number;
}

export interface TlsOptions {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
}

interface Login {
  username?: string;
  password?: string;
  tls?: TlsOptions;
}

export type RedisAddress =
  | (Login & { kind: 'single'; host: string; port: number; db: number })
  | { kind: 'socket'; path: string; db: number; username?: string; password?: string }
  | (Login & {
      kind: 'sentinel';
      sentinels: Endpoint[];
      master: string;
      db: number;
      sentinelUsername?: string;
      sentinelPassword?: string;
    })
  | (Login & { kind: 'cluster'; nodes: Endpoint[] });

const FORM = /^(rediss?)(\+sentinel|\+cluster)?:\/\/(?:([^@/?]*)@)?([^/?]+)(\/[^?]*)?(?:\?(.*))?$/;
const PORT = 6379;
const SENTINEL_PORT = 26379;
const SEVERAL = new Set(['+sentinel', '+cluster']);
const SOCKET_QUERY = ['db', 'username', 'password'];
const QUERY = ['tls_ca', 'tls_cert', 'tls_key', 'tls_servername', 'sentinel_username', 'sentinel_password'];

/** @throws Error that says what is wrong, without the password */
export function parseRedisAddress(url: string): RedisAddress {
  if (url.startsWith('unix://')) return socketOf(url.slice('unix://'.length));
  const match = FORM.exec(url);
  if (!match)
    throw new Error(
      'it is not of the form redis://[user:password@]host[:port][/database], nor redis+sentinel://…/master, redis+cluster://…, unix:///path',
    );
  const [, scheme, form = '', login, hosts = '', path = '', query = ''] = match;
  const options = queryOf(query);
  if (scheme === 'redis' && [...options.keys()].some((name) => name.startsWith('tls_')))
    throw new Error('certificates are for TLS: write rediss in place of redis');
  const endpoints = hosts
    .split(',')
    .map((text) => endpointOf(text, form === '+sentinel' ? SENTINEL_PORT : PORT));
  if (!SEVERAL.has(form) && endpoints.length > 1)
    throw new Error('several hosts need redis+sentinel:// or redis+cluster://');
  const shared = { ...loginOf(login), ...(scheme === 'rediss' ? { tls: tlsOf(options) } : {}) };
  const parts = path.split('/').slice(1);
  if (form === '+cluster') {
    if (parts.some(Boolean)) throw new Error('a Cluster has one database: leave the path out');
    return { kind: 'cluster', nodes: endpoints, ...shared };
  }
  if (form === '+sentinel') {
    const [master = '', db] = parts;
    if (!master) throw new Error('the name of the master is missing: redis+sentinel://host/master');
    const sentinelUsername = options.get('sentinel_username') ?? undefined;
    const sentinelPassword = options.get('sentinel_password') ?? undefined;
    return {
      ...{ kind: 'sentinel', sentinels: endpoints, master: decodeURIComponent(master), db: databaseOf(db) },
      ...{ sentinelUsername, sentinelPassword },
      ...shared,
    };
  }
  return { kind: 'single', ...(endpoints[0] as Endpoint), db: databaseOf(parts[0]), ...shared };
}

function socketOf(text: string): RedisAddress {
  const [path = '', query = ''] = text.split('?');
  const options = queryOf(query, SOCKET_QUERY);
  const [username, password] = ['username', 'password'].map((name) => options.get(name) ?? undefined);
  return { kind: 'socket', path, db: databaseOf(options.get('db') ?? ''), username, password };
}

/** The URL as it may be shown: without passwords. */
export function shownAddress(url: string): string {
  return url.replace(/\/\/[^?]*@/, '//***@').replace(/(password=)[^&]*/g, '$1***');
}

/** The URL with what separate settings say about TLS. Those in the URL go first. */
export function withTls(url: string, files: { ca?: string; cert?: string; key?: string }): string {
  const added = Object.entries(files)
    .filter(([name, file]) => file !== undefined && !url.includes(`tls_${name}=`))
    .map(([name, file]) => `tls_${name}=${encodeURIComponent(file as string)}`);
  if (added.length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${added.join('&')}`;
}

function queryOf(query: string, known = QUERY): URLSearchParams {
  const options = new URLSearchParams(query);
  for (const name of options.keys())
    if (!known.includes(name)) throw new Error(`${name} is no option of it; known are ${known.join(', ')}`);
  return options;
}

function endpointOf(text: string, defaultPort: number): Endpoint {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text.trim());
  const port = Number(match?.[2] ?? defaultPort);
  // What stands there is not repeated: it may be a piece of a password that was not escaped.
  if (!match || port < 1 || port > 65_535)
    throw new Error(
      'a host or its port is not right; "@", "/", ":" and "," in a password are written %40, %2F, %3A, %2C',
    );
  return { host: (match[1] as string).replace(/^\[|\]$/g, ''), port };
}

function loginOf(login: string | undefined): Login {
  if (!login) return {};
  const colon = login.indexOf(':');
  const username = decodeURIComponent(colon === -1 ? login : login.slice(0, colon)) || undefined;
  const password = colon === -1 ? undefined : decodeURIComponent(login.slice(colon + 1));
  return { username, password };
}

function databaseOf(text = ''): number {
  if (!/^\d{0,5}$/.test(text)) throw new Error('what stands behind the last "/" is no number of a database');
  return Number(text || 0);
}

function tlsOf(options: URLSearchParams): TlsOptions {
  const file = (name: string): string | undefined => {
    const path = options.get(name);
    if (path === null) return undefined;
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      throw new Error(`${name} cannot be read: ${(error as Error).message}`);
    }
  };
  const servername = options.get('tls_servername') ?? undefined;
  const given = { ca: file('tls_ca'), cert: file('tls_cert'), key: file('tls_key'), servername };
  if ((given.cert === undefined) !== (given.key === undefined))
    throw new Error('tls_cert and tls_key go together: a certificate needs its key');
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
