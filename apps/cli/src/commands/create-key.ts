/**
 * `remuda keys create` and `rotate`: the secret alone on standard output, so that a script can take it, and everything
 * about it on standard error. The very first key is written into Redis, since no API lets anybody in before it is there.
 */
import { ApiKeys } from '@remuda/core/access/api-keys';
import { AuditLog } from '@remuda/core/access/audit-log';
import { newTraceId } from '@remuda/core/ids';
import { silentLogger } from '@remuda/core/observability/logger';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, waitUntilReady } from '@remuda/core/store/redis';
import {
  ApiKeyCreate,
  DEFAULT_TENANT,
  InvalidInputError,
  IssuedKey,
  SCOPES,
  violationsOf,
} from '@remuda/schemas';
import { CliError, reasonOf, usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Terminal } from '../terminal/terminal.js';
import { actor } from './actor.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

export interface CreateKeyOptions extends ApiOptions {
  tenant?: string;
  scopes?: string[];
  expires?: string;
  rate?: number;
  burst?: number;
  redis?: boolean;
}

export async function createKey(
  name: string,
  options: CreateKeyOptions,
  context: CommandContext,
): Promise<number> {
  const body = bodyOf(name, options);
  const issued = options.redis
    ? await createInRedis(body, context)
    : await apiOf(options, context.config).admin(
        { method: 'POST', path: '/v1/admin/keys', body },
        IssuedKey,
        actor(),
      );
  return show(issued, options, context.terminal);
}

export interface RotateKeyOptions extends ApiOptions {
  /** Seconds. */
  overlap?: number;
  expires?: string;
}

export async function rotateKey(
  id: string,
  options: RotateKeyOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { overlap, expires } = options;
  const body = {
    ...(overlap === undefined ? {} : { overlap_s: overlap }),
    ...(expires === undefined ? {} : { expires_at: expires }),
  };
  const path = `/v1/admin/keys/${encodeURIComponent(id)}:rotate`;
  const issued = await apiOf(options, config).admin({ method: 'POST', path, body }, IssuedKey, actor());
  return show(issued, options, terminal);
}

function bodyOf(name: string, { tenant, scopes, expires, rate, burst, redis }: CreateKeyOptions) {
  if (burst !== undefined && rate === undefined) throw usageError('--burst needs --rate.');
  return {
    name,
    ...(tenant === undefined ? {} : { tenant }),
    ...(scopes === undefined ? (redis ? { scopes: [...SCOPES] } : {}) : { scopes }),
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...(rate === undefined
      ? {}
      : { rate_limit: { requests_per_second: rate, burst: burst ?? Math.max(1, Math.ceil(rate)) } }),
  };
}

const REDIS_PATIENCE_MS = 5_000;

async function createInRedis(body: unknown, { config }: CommandContext): Promise<IssuedKey> {
  if (config.redisUrl === undefined) throw usageError('--redis needs REDIS_URL: the Redis of the fleet.');
  const wanted = ApiKeyCreate.safeParse(body);
  if (!wanted.success)
    throw refused(new InvalidInputError(violationsOf(wanted.error, body), 'invalid_request'));
  let broken: Error | undefined;
  const redis = connectRedis({
    url: config.redisUrl,
    role: 'api',
    name: 'cli',
    onError: (error) => {
      broken = error;
    },
  });
  const keys = new Keys(config.keyspace);
  try {
    await waitUntilReady(redis, REDIS_PATIENCE_MS);
    const issued = await new ApiKeys({ redis, keys }).create(wanted.data);
    const { id, tenant, scopes, created_at } = issued.key;
    await new AuditLog({ redis, keys, logger: silentLogger }).write({
      at: created_at,
      key_id: null,
      tenant: DEFAULT_TENANT,
      address: 'redis',
      actor: actor(),
      action: 'remuda keys create --redis',
      target: { id, tenant, scopes: scopes.join(',') },
      status: 201,
      code: null,
      trace_id: newTraceId(),
    });
    return issued;
  } catch (error) {
    if (error instanceof InvalidInputError) throw refused(error);
    throw new CliError(`The key could not be written into Redis: ${reasonOf(broken ?? error)}`, EXIT.failed, {
      cause: error,
    });
  } finally {
    closeRedis(redis);
  }
}

function refused({ violations }: InvalidInputError): CliError {
  const lines = violations.map(
    ({ path, expected, received }) => `  ${path}: expected ${expected}, received ${received}`,
  );
  return usageError(['The key cannot be made so:', ...lines].join('\n'));
}

function show({ key, secret }: IssuedKey, { json }: ApiOptions, terminal: Terminal): number {
  if (json) {
    printJson(terminal, { key, secret });
    return EXIT.ok;
  }
  const { id, name, tenant, scopes, expires_at, old_secret_until } = key;
  terminal.out(secret);
  terminal.note(
    `key ${id} (${name}) of tenant ${tenant} may ${scopes.join(', ')}${expires_at ? `, until ${expires_at}` : ''}`,
  );
  if (old_secret_until) terminal.note(`its old secret is taken until ${old_secret_until}`);
  terminal.note(
    terminal.noteColours.yellow('the line above it is the key: it is kept nowhere and not shown again'),
  );
  return EXIT.ok;
}
