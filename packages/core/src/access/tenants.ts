/**
 * Tenants in Redis: a name needs no entry to be used, only weight and limits that differ from the defaults do. Read by
 * every process through tenant-view.ts.
 */
import { Tenant, type TenantPut } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';

export interface TenantsOptions {
  redis: Redis;
  keys: Keys;
  clock?: Clock;
}

/** Edits are made by people: that many in a row lost to others means that something is wrong. */
const MOST_TRIES = 20;

export class Tenants {
  readonly #options: TenantsOptions;

  constructor(options: TenantsOptions) {
    this.#options = options;
  }

  /** Those of which something is set, as they lie in Redis, by name. */
  async texts(): Promise<Record<string, string>> {
    const { redis, keys } = this.#options;
    return redis.hgetall(keys.tenants());
  }

  async list(): Promise<Tenant[]> {
    const found = Object.values(await this.texts()).map(parseTenant);
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The defaults where nothing is set. */
  async get(name: string): Promise<Tenant> {
    const { redis, keys } = this.#options;
    const text = await redis.hget(keys.tenants(), name);
    return text === null ? defaultTenant(name) : parseTenant(text);
  }

  /** Sets all of a tenant. */
  async put(name: string, { weight, limits }: TenantPut): Promise<Tenant> {
    const { redis, keys, clock = systemClock } = this.#options;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const before = (await redis.hget(keys.tenants(), name)) ?? '';
      const tenant: Tenant = { name, weight, limits, updated_at: new Date(clock.now()).toISOString() };
      const args = [name, before, JSON.stringify(tenant), keys.tenantsChanged()];
      if ((await callScript(redis, 'saveAccess', [keys.tenants()], args)) === 1) return tenant;
    }
    throw new RemudaError('internal', `tenant ${name} is being changed all the time: try again`);
  }
}

export function parseTenant(text: string): Tenant {
  return Tenant.parse(JSON.parse(text));
}

/** A tenant of which nothing is set: weight 1, no limits of its own. */
export function defaultTenant(name: string): Tenant {
  const limits = { max_waiting: null, max_waiting_rows: null, max_waiting_bytes: null };
  return { name, weight: 1, limits, updated_at: null };
}
