/**
 * Everything about keys, tenants and the audit log that the API calls, as one bundle over one Redis. Who may do what is
 * asked at the edge; what each part promises stands in its own file beside this one.
 */
import type {
  ApiKey,
  ApiKeyCreate,
  ApiKeyRotate,
  AuditEntry,
  IssuedKey,
  Tenant,
  TenantPut,
} from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import { type Service, ServiceGroup } from '../lifecycle/service.js';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import { StoreGuard } from '../requests/store-guard.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { ApiKeys } from './api-keys.js';
import { AuditLog, type AuditRecord } from './audit-log.js';
import { Authenticator } from './authenticator.js';
import { CallRate, type RateVerdict } from './call-rate.js';
import type { Caller } from './caller.js';
import { KeyUses } from './key-uses.js';
import { Tenants } from './tenants.js';

export interface AccessDeps {
  /** A connection of role `api`. */
  redis: Redis;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  logger: Logger;
  metrics: Pick<Metrics, 'redisErrors'>;
  clock?: Clock;
}

/** All throw RemudaError store_unavailable where Redis is away. */
export interface Access {
  /** @throws RemudaError unauthorized */
  authenticate(text: string): Caller | Promise<Caller>;
  /** Notes that a key was used. */
  used(keyId: string): void;
  /** Counts a call of a key that has a limit. */
  countCall(caller: Caller): Promise<RateVerdict>;

  createKey(wanted: ApiKeyCreate): Promise<IssuedKey>;
  listKeys(): Promise<ApiKey[]>;
  /** @throws RemudaError key_not_found */
  getKey(id: string): Promise<ApiKey>;
  rotateKey(id: string, wanted: ApiKeyRotate): Promise<IssuedKey>;
  revokeKey(id: string): Promise<ApiKey>;
  anyUsableKey(): Promise<boolean>;

  /** Those of which something is set, and those that have a key. */
  listTenants(): Promise<Tenant[]>;
  /** @throws RemudaError tenant_not_found where nothing is set and no key belongs to it */
  getTenant(name: string): Promise<Tenant>;
  putTenant(name: string, wanted: TenantPut): Promise<Tenant>;

  audit(record: AuditRecord): Promise<void>;
  /** Newest first. */
  listAudit(limit: number, before?: string): Promise<AuditEntry[]>;
}

export type AccessService = Access &
  Service & {
    /** Writes now when keys were last used. */
    writeUses(): Promise<void>;
  };

export function createAccess(deps: AccessDeps): AccessService {
  const { redis, subscriber, keys, logger, metrics, clock = systemClock } = deps;
  const onError = (err: Error): void =>
    logger.warn({ err }, 'background work about API keys failed; it is tried again');
  const guard = new StoreGuard(redis, metrics);
  const apiKeys = new ApiKeys({ redis, keys, clock });
  const tenants = new Tenants({ redis, keys, clock });
  const auditLog = new AuditLog({ redis, keys, logger });
  const rate = new CallRate({ redis, keys });
  const authenticator = new Authenticator({ store: apiKeys, guard, subscriber, keys, onError, clock });
  const uses = new KeyUses({ store: apiKeys, onError, clock });
  const services = new ServiceGroup('access', [authenticator, uses], (service, err) => {
    logger.error({ err, stopping: service }, 'a service did not stop well');
  });
  const allTenants = async (): Promise<Tenant[]> => {
    const [set, issued] = await Promise.all([tenants.list(), apiKeys.list()]);
    const known = new Set(set.map(({ name }) => name));
    const names = [...new Set(issued.map(({ tenant }) => tenant))].filter((name) => !known.has(name));
    const others = await Promise.all(names.map((name) => tenants.get(name)));
    return [...set, ...others].sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  return {
    name: services.name,
    start: () => services.start(),
    stop: () => services.stop(),

    authenticate: (text) => authenticator.authenticate(text),
    used: (keyId) => uses.note(keyId),
    writeUses: () => uses.write(),
    countCall: ({ keyId, rateLimit }) =>
      guard.run(() => rate.take(keyId as string, rateLimit as NonNullable<typeof rateLimit>)),

    createKey: async (wanted) => {
      apiKeys.checkExpiry(wanted.expires_at);
      return guard.run(() => apiKeys.create(wanted));
    },
    listKeys: () => guard.run(() => apiKeys.list()),
    getKey: (id) => guard.run(() => apiKeys.get(id)),
    rotateKey: async (id, wanted) => {
      apiKeys.checkExpiry(wanted.expires_at);
      return guard.run(() => apiKeys.rotate(id, wanted));
    },
    revokeKey: (id) => guard.run(() => apiKeys.revoke(id)),
    anyUsableKey: () => guard.run(() => apiKeys.anyUsable()),

    listTenants: () => guard.run(allTenants),
    getTenant: async (name) => {
      const found = (await guard.run(allTenants)).find((tenant) => tenant.name === name);
      if (found) return found;
      throw new RemudaError('tenant_not_found', `nothing is set of a tenant "${name}", and it has no key`);
    },
    putTenant: (name, wanted) => guard.run(() => tenants.put(name, wanted)),

    audit: (record) => guard.run(() => auditLog.write(record)),
    listAudit: (limit, before) => guard.run(() => auditLog.list(limit, before)),
  };
}
