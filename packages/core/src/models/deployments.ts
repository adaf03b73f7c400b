/**
 * The desired state of models in Redis. Every edit is one script: it happens wholly and is written into the model's
 * history, or not at all because someone else was faster; then it is made again from what is there now.
 *
 * Edited by the admin API (edit-models.ts), read by workers through deployment-view.ts and turned into what to load by
 * version-plan.ts.
 */
import { ModelDeployment, ModelEvent, ServingState } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Keys } from '../store/keys.js';
import { callScript, type Redis } from '../store/redis.js';
import { ParsedTexts } from './parsed-texts.js';

/** When what nobody has touched was changed. A text: it is asked for again and again, of many models. */
const NEVER = '1970-01-01T00:00:00.000Z';
const HISTORY_KEPT = 500;
/** Edits are made by people: that many in a row lost to other processes means that something is wrong. */
const MOST_TRIES = 20;

export interface Edit {
  model: string;
  /** Who asks for it. */
  who: string;
  /** Verb for the history. */
  what: string;
  /** For the history. */
  detail: Record<string, unknown>;
  /** The new state from the one there is; throws to refuse. Called again where someone else was faster. */
  change(current: ModelDeployment): ModelDeployment;
}

export interface DeploymentsOptions {
  redis: Redis;
  keys: Keys;
  clock?: Clock;
}

export class Deployments {
  readonly #redis: Redis;
  readonly #keys: Keys;
  readonly #clock: Clock;
  readonly #deployments = new ParsedTexts(parseDeployment);
  readonly #serving = new ParsedTexts((text) => ServingState.parse(JSON.parse(text)));
  /** The last edit of each model that is under way here: the next one waits for it, or they would undo each other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor({ redis, keys, clock = systemClock }: DeploymentsOptions) {
    this.#redis = redis;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** The newest revision; 0 while nothing was ever changed. */
  async revision(): Promise<number> {
    return Number((await this.#redis.get(this.#keys.deploymentsRevision())) ?? 0);
  }

  /** What has not changed since the last reading is the same object. */
  async all(): Promise<Map<string, ModelDeployment>> {
    return this.#deployments.of(await this.#redis.hgetall(this.#keys.deployments()));
  }

  /** What is stored; the state of a model that nobody has touched where there is nothing. */
  async get(model: string): Promise<ModelDeployment> {
    const text = await this.#redis.hget(this.#keys.deployments(), model);
    return text === null ? untouched(model) : parseDeployment(text);
  }

  /** @throws what `change` throws, RemudaError internal */
  async edit(edit: Edit): Promise<ModelDeployment> {
    const { model } = edit;
    const before = this.#turns.get(model) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(() => this.#editNow(edit));
    this.#turns.set(model, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(model) === turn) this.#turns.delete(model);
    }
  }

  async #editNow({ model, who, what, detail, change }: Edit): Promise<ModelDeployment> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const current = await this.get(model);
      const at = new Date(this.#clock.now()).toISOString();
      const { revision: _, ...next } = { ...change(current), updated_at: at, updated_by: who };
      const { revision: __, ...event } = { at, who, what, detail, revision: null } satisfies ModelEvent;
      const revision = await callScript(
        this.#redis,
        'saveDeployment',
        [this.#keys.deployments(), this.#keys.deploymentsRevision(), this.#keys.modelHistory(model)],
        [model, current.revision, JSON.stringify(next), JSON.stringify(event), HISTORY_KEPT],
      );
      if (revision === 0) continue;
      await this.#redis.publish(this.#keys.modelsChanged(), model);
      return { ...next, revision: revision as number };
    }
    throw new RemudaError(
      'internal',
      `the desired state of ${model} is being changed all the time: try again`,
    );
  }

  /** Newest first. */
  async history(model: string, limit: number): Promise<ModelEvent[]> {
    const texts = await this.#redis.lrange(this.#keys.modelHistory(model), 0, limit - 1);
    return texts.map((text) => {
      const [revision, json] = revisionAnd(text);
      return ModelEvent.parse({ ...json, revision: revision === 0 ? null : revision });
    });
  }

  /** For what the fleet did by itself. */
  async record(model: string, event: Omit<ModelEvent, 'at' | 'revision'>): Promise<void> {
    const entry = { at: new Date(this.#clock.now()).toISOString(), ...event };
    const key = this.#keys.modelHistory(model);
    await this.#redis
      .multi()
      .lpush(key, `0 ${JSON.stringify(entry)}`)
      .ltrim(key, 0, HISTORY_KEPT - 1)
      .exec();
  }

  /** Which version requests without a version go to, by model; the same objects where nothing has changed. */
  async serving(): Promise<Map<string, ServingState>> {
    return this.#serving.of(await this.#redis.hgetall(this.#keys.serving()));
  }

  /** For the steward alone. False: the lease with that token is no longer held, and nothing was changed. */
  async serve(state: ServingState, leaseToken = ''): Promise<boolean> {
    const stored = await callScript(
      this.#redis,
      'saveServing',
      [this.#keys.serving(), this.#keys.stewardLease()],
      [state.model, JSON.stringify(state), leaseToken],
    );
    if (stored === 0) return false;
    await this.#redis.publish(this.#keys.modelsChanged(), state.model);
    return true;
  }
}

/** The desired state of a model that lies in a repository and was never touched: everything as model.yaml says. */
export function untouched(model: string): ModelDeployment {
  return {
    model,
    revision: 0,
    source: null,
    registered: true,
    load_mode: null,
    version_policy: null,
    loads: {},
    pinned: null,
    instances: null,
    settings: {},
    aliases: {},
    split: null,
    shadow: null,
    digests: {},
    updated_at: NEVER,
    updated_by: 'repository',
  };
}

function parseDeployment(text: string): ModelDeployment {
  const [revision, json] = revisionAnd(text);
  return ModelDeployment.parse({ ...json, revision });
}

function revisionAnd(text: string): [number, Record<string, unknown>] {
  const space = text.indexOf(' ');
  return [Number(text.slice(0, space)), JSON.parse(text.slice(space + 1)) as Record<string, unknown>];
}
