/**
 * All tenants as this process last saw them, for who asks on the way of each request: no question to Redis. Read anew at
 * once when a tenant has changed, and every few seconds, where that message was lost. While Redis cannot be reached the
 * last view stays.
 */
import type { Tenant } from '@remuda/schemas';
import { Repeat } from '../fleet/repeat.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { ParsedTexts } from '../models/parsed-texts.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { defaultTenant, parseTenant, Tenants } from './tenants.js';

const POLL_EVERY_MS = 5_000;
/** Default tenants that are remembered, so that asking twice makes no new object. */
const MOST_DEFAULTS = 10_000;

export interface TenantViewOptions {
  redis: Redis;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
}

export class TenantView implements Service {
  readonly name = 'tenants';
  readonly store: Tenants;
  readonly #options: TenantViewOptions;
  readonly #repeat: Repeat;
  readonly #parsed = new ParsedTexts(parseTenant);
  #tenants: ReadonlyMap<string, Tenant> = new Map();
  #defaults = new Map<string, Tenant>();
  /** Of two readings that overlap the one that began later is kept. */
  #readings = 0;

  constructor(options: TenantViewOptions) {
    const { redis, keys, clock = systemClock, everyMs = POLL_EVERY_MS, onError } = options;
    this.#options = options;
    this.store = new Tenants({ redis, keys, clock });
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.refresh() });
  }

  /** Weight and limits of a tenant; the defaults where nobody has set any. The same object while nothing changes. */
  of(name: string): Tenant {
    const set = this.#tenants.get(name) ?? this.#defaults.get(name);
    if (set) return set;
    if (this.#defaults.size >= MOST_DEFAULTS) this.#defaults.clear();
    const made = defaultTenant(name);
    this.#defaults.set(name, made);
    return made;
  }

  /** Tenants of which something is set. */
  get known(): Iterable<Tenant> {
    return this.#tenants.values();
  }

  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#heard);
    // A subscriber that cannot connect yet subscribes later by itself; until then the poll does the work.
    subscriber.subscribe(keys.tenantsChanged()).catch(onError);
    await this.#repeat.start();
  }

  async stop(): Promise<void> {
    this.#options.subscriber.off('message', this.#heard);
    await this.#repeat.stop();
  }

  async refresh(): Promise<void> {
    if (this.#options.redis.status !== 'ready') return;
    const reading = ++this.#readings;
    const texts = await this.store.texts();
    if (reading === this.#readings) this.#tenants = this.#parsed.of(texts);
  }

  readonly #heard = (channel: string): void => {
    const { keys, onError } = this.#options;
    if (channel === keys.tenantsChanged()) this.refresh().catch(onError);
  };
}
