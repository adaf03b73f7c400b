/**
 * The role that moves references: while the fleet converges to a desired state, it looks at what the workers have
 * ready and lets each reference follow when nothing is lost by it (reference-moves.ts). One worker of the fleet has the
 * role at a time, by a lease; what it writes is refused by Redis once the lease is another's.
 *
 * It also takes back canaries that are worse than the stable version (canary-rollback.ts).
 *
 * Every move goes into the model's history, the log and the metrics. A move that is held back because the new version
 * failed is told once.
 */
import type { HarnessConfig, ServedRef, ServingState, WorkerHeartbeat } from '@remuda/schemas';
import { HeartbeatReader } from '../fleet/heartbeat-reader.js';
import { LeasedService } from '../fleet/leased-role.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import { fieldOf, PublishedSignatures } from '../requests/published-signatures.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { rollBackBadCanaries } from './canary-rollback.js';
import type { DeploymentView } from './deployment-view.js';
import { classesOf, configOf, type FleetModel, fleetModels, isBroken } from './fleet-models.js';
import { decideMoves, type Move } from './reference-moves.js';

const EVERY_MS = 500;
const LEASE_MS = 5_000;
/** Configurations change seldom, and a version that is ready and not yet known is read at once. */
const SIGNATURES_EVERY_MS = 5_000;
/** Entries of the history in which a held move is looked for, so that a new steward does not tell it again. */
const HISTORY_LOOK_BACK = 50;
const FLEET = 'fleet';

export interface StewardOptions {
  redis: Redis;
  keys: Keys;
  /** Started by who has it; its onChange should call nudge(). */
  view: DeploymentView;
  metrics: Pick<Metrics, 'referenceMoves' | 'canaryRollbacks'>;
  logger: Logger;
  onError(error: Error): void;
  clock?: Clock;
  /** Pause between two turns. */
  everyMs?: number;
}

export class Steward extends LeasedService {
  readonly #options: StewardOptions;
  readonly #clock: Clock;
  readonly #heartbeats: HeartbeatReader;
  readonly #published: PublishedSignatures;
  #publishedAt = Number.NEGATIVE_INFINITY;
  /** Reason by model, reference and version. */
  #held = new Map<string, string>();

  constructor(options: StewardOptions) {
    const { redis, keys, clock = systemClock, everyMs = EVERY_MS, onError } = options;
    super({ name: 'steward', redis, key: keys.stewardLease(), leaseMs: LEASE_MS, everyMs, clock, onError });
    this.#options = options;
    this.#clock = clock;
    this.#heartbeats = new HeartbeatReader({ redis, keys, clock });
    this.#published = new PublishedSignatures(redis, keys);
  }

  protected async takeTurn(): Promise<void> {
    const workers = await this.#heartbeats.read();
    const models = fleetModels(workers);
    const broken = (model: string, version: string) => isBroken(models.get(model) ?? NOTHING, version);
    await rollBackBadCanaries({ ...this.#options, isBroken: broken });
    await this.#refreshPublished(models);
    const seen = this.#decide(models, workers);
    if (seen.every(({ moves }) => moves.every(isHeld))) return this.#tellHeld(seen);
    // The view may be behind by what another steward has just done.
    const { view } = this.#options;
    await view.refresh();
    const decisions = this.#decide(models, workers);
    await Promise.all(decisions.map((decision) => this.#carryOut(decision)));
    await this.#tellHeld(decisions);
    await view.refresh();
  }

  #decide(models: ReadonlyMap<string, FleetModel>, workers: readonly WorkerHeartbeat[]): Decision[] {
    const { view } = this.#options;
    const starting = workers.some(({ state }) => state === 'starting');
    // A model that no worker knows may still have an alias to drop.
    const names = new Set([...models.keys(), ...view.deployments.keys()]);
    const decisions: Decision[] = [];
    for (const model of names) {
      const known = models.get(model) ?? NOTHING;
      const deployment = view.of(model);
      const serving = view.serving(model);
      const config = this.#configOf(model, known);
      const allowedOn = (version: string) => classesOf(model, version, this.#published.byField);
      const moves = decideMoves({ deployment, config, serving, copies: known.copies, starting, allowedOn });
      if (moves.length > 0) decisions.push({ model, serving, moves });
    }
    return decisions;
  }

  #configOf(
    model: string,
    known: FleetModel,
  ): Pick<HarnessConfig, 'version_policy' | 'load_mode'> | undefined {
    const published = configOf(model, known, this.#published.byField);
    // What the workers say now goes before what was published when a version was loaded.
    return published && known.copies.length > 0 ? { ...published, load_mode: known.loadMode } : published;
  }

  async #refreshPublished(models: ReadonlyMap<string, FleetModel>): Promise<void> {
    const now = this.#clock.now();
    const isNew = [...models].some(([model, { copies }]) =>
      copies.some(
        ({ version, state }) => state === 'ready' && !this.#published.byField.has(fieldOf(model, version)),
      ),
    );
    if (!isNew && now - this.#publishedAt < SIGNATURES_EVERY_MS) return;
    await this.#published.refresh();
    this.#publishedAt = now;
  }

  async #carryOut({ model, serving, moves }: Decision): Promise<void> {
    const { view, metrics, logger } = this.#options;
    const done = moves.filter((move) => !isHeld(move));
    if (done.length === 0) return;
    const at = new Date(this.#clock.now()).toISOString();
    const state = { model, refs: movedRefs(serving, done, at) };
    if (!(await view.store.serve(state, this.token))) return;
    for (const { kind, ...detail } of done) {
      metrics.referenceMoves.inc({ model, kind });
      logger.info({ model, ...detail }, `reference ${kind.replace('_', ' ')}`);
      await view.store.record(model, { who: FLEET, what: kind, detail });
    }
  }

  /** Once for each reason, though it is found with every turn. */
  async #tellHeld(decisions: readonly Decision[]): Promise<void> {
    const before = this.#held;
    this.#held = new Map();
    for (const { model, moves } of decisions) {
      for (const move of moves.filter(isHeld)) {
        const key = `${model} ${move.ref} ${move.to}`;
        this.#held.set(key, move.reason);
        if (before.get(key) !== move.reason) await this.#tellOne(model, move);
      }
    }
  }

  async #tellOne(model: string, { kind, ...detail }: Move): Promise<void> {
    const { view, metrics, logger } = this.#options;
    const told = await view.store.history(model, HISTORY_LOOK_BACK);
    const last = told.find(({ who, detail: { ref } }) => who === FLEET && ref === detail.ref);
    if (last?.what === kind && last.detail.reason === detail.reason) return;
    metrics.referenceMoves.inc({ model, kind });
    logger.warn({ model, ...detail }, 'reference held back: the new version failed');
    await view.store.record(model, { who: FLEET, what: kind, detail });
  }
}

interface Decision {
  model: string;
  serving: ServingState | undefined;
  moves: Move[];
}

const NOTHING: FleetModel = { copies: [], loadMode: 'eager' };

function isHeld({ kind }: Move): boolean {
  return kind === 'held';
}

function movedRefs(
  serving: ServingState | undefined,
  moves: readonly Move[],
  since: string,
): ServingState['refs'] {
  const refs: Record<string, ServedRef> = { ...serving?.refs };
  for (const { ref, from, to, reason } of moves) {
    if (to === null) delete refs[ref];
    else refs[ref] = { version: to, previous: from, since, reason };
  }
  return refs;
}
