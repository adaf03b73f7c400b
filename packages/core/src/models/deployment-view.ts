/**
 * Desired states as this process last saw them: read anew when the counter of revisions or what is served has changed,
 * at once when the channel says so, and within `everyMs` where that message was lost. While Redis cannot be reached the
 * last view stays.
 */
import type { ModelDeployment, ServingState } from '@remuda/schemas';
import { Repeat } from '../fleet/repeat.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { Deployments, untouched } from './deployments.js';

const POLL_EVERY_MS = 1_000;

export interface DeploymentViewOptions {
  redis: Redis;
  /** A connection of role `subscriber`, which others may use too. */
  subscriber: Redis;
  keys: Keys;
  /**
   * After each change; whatever it throws goes to onError.
   * @param what desired: of the desired state, and perhaps of what is served too; serving: of that alone
   */
  onChange?(what: 'desired' | 'serving'): void;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
}

export class DeploymentView implements Service {
  readonly name = 'deployments';
  readonly store: Deployments;
  readonly #options: DeploymentViewOptions;
  readonly #repeat: Repeat;
  #deployments: ReadonlyMap<string, ModelDeployment> = new Map();
  #serving: ReadonlyMap<string, ServingState> = new Map();
  #revision = -1;
  #servingText = '';
  #refreshing: Promise<void> | undefined;
  #again = false;

  constructor(options: DeploymentViewOptions) {
    const { redis, keys, clock = systemClock, everyMs = POLL_EVERY_MS, onError } = options;
    this.#options = options;
    this.store = new Deployments({ redis, keys, clock });
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.refresh() });
  }

  /** Newest revision that was taken in; 0 while nothing was ever changed. */
  get revision(): number {
    return Math.max(0, this.#revision);
  }

  get deployments(): ReadonlyMap<string, ModelDeployment> {
    return this.#deployments;
  }

  /** The desired state of a model, also of one that nobody has touched. */
  of(model: string): ModelDeployment {
    return this.#deployments.get(model) ?? untouched(model);
  }

  /** What requests without a version go to; undefined: nothing was agreed yet. */
  serving(model: string): ServingState | undefined {
    return this.#serving.get(model);
  }

  async start(): Promise<void> {
    const { subscriber, keys, onError } = this.#options;
    subscriber.on('message', this.#heard);
    // A subscriber that cannot connect yet subscribes later by itself; until then the poll does the work.
    subscriber.subscribe(keys.modelsChanged()).catch(onError);
    await this.#repeat.start();
  }

  async stop(): Promise<void> {
    this.#options.subscriber.off('message', this.#heard);
    await this.#repeat.stop();
  }

  /** One reading at a time; what is asked for during one is answered by another after it. */
  async refresh(): Promise<void> {
    if (this.#refreshing) {
      this.#again = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#read().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
    if (!this.#again) return;
    this.#again = false;
    await this.refresh();
  }

  #heard = (channel: string): void => {
    const { keys, onError } = this.#options;
    if (channel === keys.modelsChanged()) this.refresh().catch(onError);
  };

  async #read(): Promise<void> {
    const { redis, onChange } = this.#options;
    if (redis.status !== 'ready') return;
    const [revision, serving] = await Promise.all([this.store.revision(), this.store.serving()]);
    const servingText = JSON.stringify([...serving]);
    const changed = revision !== this.#revision || servingText !== this.#servingText;
    if (!changed) return;
    const desired = revision !== this.#revision;
    // Read after the counter, so it is at least as new as that.
    if (desired) this.#deployments = await this.store.all();
    this.#revision = revision;
    this.#serving = serving;
    this.#servingText = servingText;
    onChange?.(desired ? 'desired' : 'serving');
  }
}
