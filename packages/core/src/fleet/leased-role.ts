/**
 * A role that one process of the fleet has at a time, taken in turns: each turn begins with the lease (lease.ts), and
 * whoever does not get it has spent one command. A turn that is asked for while one is under way follows it; several
 * are one. Sweepers, the rerouter and the steward are services of this kind.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Redis } from '../store/redis.js';
import { Lease } from './lease.js';
import { Repeat } from './repeat.js';

export interface LeasedRoleOptions {
  name: string;
  redis: Redis;
  /** Key of the lease. */
  key: string;
  /** Time to live of the lease: long enough for a slow turn, short enough that a dead holder is soon replaced. */
  leaseMs: number;
  /** Pause between two turns. */
  everyMs: number;
  /** What the role does; called by the holder of the lease only. */
  turn(): Promise<void>;
  onError(error: Error): void;
  clock?: Clock;
}

export class LeasedRole implements Service {
  readonly #options: LeasedRoleOptions;
  readonly #lease: Lease;
  readonly #repeat: Repeat;
  #underWay: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: LeasedRoleOptions) {
    const { redis, key, leaseMs, everyMs, onError, clock = systemClock } = options;
    this.#options = options;
    this.#lease = new Lease({ redis, key, ms: leaseMs });
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.turn() });
  }

  get name(): string {
    return this.#options.name;
  }

  /** What stands in the lease while this process has it. */
  get token(): string {
    return this.#lease.token;
  }

  /** Does not wait for the first turn: a process has better things to do at its start. */
  async start(): Promise<void> {
    void this.#repeat.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#repeat.stop();
    await this.#underWay?.catch(() => {});
    await this.#lease.release();
  }

  /** A turn now rather than at its time: something has happened that it should see soon. */
  nudge(): void {
    if (!this.#stopped) this.turn().catch(this.#options.onError);
  }

  /** One turn, unless another process of the fleet has the lease. */
  async turn(): Promise<void> {
    if (this.#underWay) {
      this.#again = true;
      return this.#underWay;
    }
    this.#underWay = this.#take().finally(() => {
      this.#underWay = undefined;
    });
    await this.#underWay;
    if (!this.#again || this.#stopped) return;
    this.#again = false;
    await this.turn();
  }

  async #take(): Promise<void> {
    if (await this.#lease.hold()) await this.#options.turn();
  }
}

/** A service that is such a role and nothing else: what it does in a turn is its own. */
export abstract class LeasedService implements Service {
  readonly name: string;
  readonly #role: LeasedRole;

  constructor(options: Omit<LeasedRoleOptions, 'turn'>) {
    this.name = options.name;
    this.#role = new LeasedRole({ ...options, turn: () => this.takeTurn() });
  }

  start(): Promise<void> {
    return this.#role.start();
  }

  stop(): Promise<void> {
    return this.#role.stop();
  }

  /** One turn, unless another process of the fleet has the lease; asked for during one, another follows it. */
  turn(): Promise<void> {
    return this.#role.turn();
  }

  /** A turn now rather than at its time. */
  nudge(): void {
    this.#role.nudge();
  }

  /** What stands in the lease while this process has it. */
  protected get token(): string {
    return this.#role.token;
  }

  /** Called by the holder of the lease only. */
  protected abstract takeTurn(): Promise<void>;
}
