/**
 * A worker, put together: connection, devices, models, heartbeats, sweeper, liveness, health port. N of them on one
 * machine or many need nothing of each other but the same Redis and the same model repository.
 */
import { hostname } from 'node:os';
import { TenantView } from '@remuda/core/access/tenant-view';
import { machineStatus } from '@remuda/core/devices/machine';
import { MachineWatch } from '@remuda/core/devices/machine-watch';
import { itemError } from '@remuda/core/errors';
import { FleetGlance } from '@remuda/core/fleet/fleet-glance';
import { HeartbeatWriter } from '@remuda/core/fleet/heartbeats';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { type Service, ServiceGroup } from '@remuda/core/lifecycle/service';
import { DeploymentView } from '@remuda/core/models/deployment-view';
import { ShadowComparer } from '@remuda/core/models/shadow-comparer';
import { Steward } from '@remuda/core/models/steward';
import { VersionStats } from '@remuda/core/models/version-stats';
import { type LifeLog, lifeLog } from '@remuda/core/observability/events';
import type { Logger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import { sparseErrors } from '@remuda/core/observability/sparse-log';
import { JobQueues, type JobTicket } from '@remuda/core/queue/job-queue';
import { acceptedAnew } from '@remuda/core/requests/accepted-anew';
import { afterEnd } from '@remuda/core/requests/after-end';
import { Aftermath } from '@remuda/core/requests/aftermath';
import { Coalescing } from '@remuda/core/requests/coalescing';
import { Rerouter } from '@remuda/core/requests/reroute-requests';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { CacheStore } from '@remuda/core/store/cache-store';
import { Keys } from '@remuda/core/store/keys';
import { LetterStore } from '@remuda/core/store/letter-store';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import { shownAddress } from '@remuda/core/store/redis-address';
import { RequestStore } from '@remuda/core/store/request-store';
import { StoreClock } from '@remuda/core/store/store-clock';
import { WebhookDeliveries } from '@remuda/core/webhooks/deliveries';
import { OverdueSweep } from '@remuda/core/webhooks/overdue-sweep';
import { WebhookSender } from '@remuda/core/webhooks/send-webhook';
import { type WebhookParts, webhookParts } from '@remuda/core/webhooks/webhook-parts';
import type { Health, ItemError, WorkerHeartbeat } from '@remuda/schemas';
import { Announcements } from './announcements.js';
import { BulkHost } from './bulk-host.js';
import type { WorkerConfig } from './config.js';
import { HealthServer } from './health-server.js';
import { Liveness, type ProgressFacts, partitionLabel } from './liveness.js';
import { ModelHost, type ModelHostDeps } from './model-host.js';
import { processJob } from './process-job.js';
import { ProviderTrials } from './provider-trials.js';
import { RateMeter } from './rate-meter.js';

const VERSION = '0.1.0';
/** A worker that cannot reach Redis at its start says so and ends; later it waits for ever. */
const REDIS_AT_START_MS = 10_000;
const LIVENESS_EVERY_MS = 2_000;
const NOT_PROBED = { cores: 1, cpu: null, memory_bytes: 0, memory_free_bytes: null };

export interface WorkerOptions {
  config: WorkerConfig;
  logger: Logger;
  /** Default: that of Redis, as store-clock.ts knows it. */
  clock?: Clock;
  /** Another runner than the real one, for simulated workers. */
  newRunner?: ModelHostDeps['newRunner'];
  /** And what reads a signature in its place. */
  inspect?: ModelHostDeps['inspect'];
}

export class Worker implements Service {
  readonly name = 'worker';
  readonly #config: WorkerConfig;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #storeClock: StoreClock;
  readonly #newRunner: WorkerOptions['newRunner'];
  readonly #inspect: WorkerOptions['inspect'];
  readonly #metrics: Metrics = createMetrics();
  readonly #life: LifeLog;
  readonly #logRedis: (error: Error) => void;
  #startedAt = 0;
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #fleet: FleetGlance;
  readonly #store: RequestStore;
  readonly #deployments: DeploymentView;
  readonly #versions: VersionStats;
  readonly #comparer: ShadowComparer;
  readonly #steward: Steward;
  /** For jobs that are put back: at the turns of their tenants, too. */
  readonly #tenants: TenantView;
  readonly #queues: JobQueues;
  readonly #webhooks: WebhookParts;
  readonly #rates: RateMeter;
  readonly #health: HealthServer;
  readonly #announcements: Announcements;
  #machine: MachineWatch | undefined;
  #models: ModelHost | undefined;
  #liveness: Liveness | undefined;
  #heartbeats: HeartbeatWriter | undefined;
  #services: ServiceGroup | undefined;
  #state: WorkerHeartbeat['state'] = 'starting';

  constructor({ config, logger, clock: given, newRunner, inspect }: WorkerOptions) {
    this.#newRunner = newRunner;
    this.#inspect = inspect;
    this.#config = config;
    this.#logger = logger.child({ worker_id: config.workerId });
    this.#logRedis = sparseErrors(
      this.#logger,
      `Redis at ${shownAddress(config.redisUrl)}; it is tried again`,
    );
    // Not the child: life events name their worker themselves where it matters.
    this.#life = lifeLog(logger);
    this.#redis = connectRedis({
      url: config.redisUrl,
      role: 'worker',
      name: `worker-${config.workerId}`,
      onError: (error) => this.#redisError(error),
    });
    this.#storeClock = new StoreClock({ redis: this.#redis });
    const clock = given ?? this.#storeClock;
    this.#clock = clock;
    this.#rates = new RateMeter(clock);
    this.#subscriber = connectRedis({
      url: config.redisUrl,
      role: 'subscriber',
      name: `worker-${config.workerId}-subscriber`,
      onError: (error) => this.#redisError(error),
    });
    this.#store = new RequestStore(this.#redis, new Keys(config.keyspace));
    const shared = { redis: this.#redis, keys: this.#store.keys, clock };
    this.#deployments = new DeploymentView({
      ...shared,
      subscriber: this.#subscriber,
      onChange: (what) => {
        // Where requests go says nothing of what lies on the disk.
        this.#models?.turnSoon({ look: what === 'desired' });
        if (config.steward) this.#steward.nudge();
      },
      onError: (error) => this.#redisError(error),
    });
    this.#fleet = new FleetGlance({ ...shared, onError: (error) => this.#redisError(error) });
    const watching = {
      ...shared,
      deployments: this.#deployments,
      onError: (error: Error) => this.#redisError(error),
    };
    this.#comparer = new ShadowComparer({ ...watching, store: this.#store, metrics: this.#metrics });
    this.#versions = new VersionStats({
      ...watching,
      onShadowEnd: (model, id) => this.#comparer.offer(model, id),
    });
    this.#steward = this.#newSteward();
    this.#tenants = new TenantView({
      ...shared,
      subscriber: this.#subscriber,
      onError: (error) => this.#redisError(error),
    });
    this.#queues = new JobQueues({
      redis: this.#redis,
      keyPrefix: config.keyspace.prefix,
      onError: (error) => this.#redisError(error),
      weightOf: (tenant) => this.#tenants.of(tenant).weight,
      priorityStepRows: config.priorityStepRows,
    });
    this.#webhooks = webhookParts({
      ...shared,
      life: this.#life,
      onError: (error) => this.#redisError(error),
    });
    this.#announcements = new Announcements(clock, () => this.#beat());
    this.#health = new HealthServer({
      host: config.host,
      port: config.port,
      metrics: this.#metrics,
      live: () => this.#live(),
      ready: () => this.#ready(),
    });
  }

  get healthUrl(): string {
    return this.#health.url;
  }

  async start(): Promise<void> {
    await waitUntilReady(this.#redis, REDIS_AT_START_MS);
    await this.#storeClock.start();
    this.#startedAt = this.#clock.now();
    const machine = await this.#openMachine();
    this.#machine = machine;
    const trials = this.#newProviderTrials(machine);
    const models = this.#newModelHost(machine, trials);
    this.#models = models;
    this.#liveness = this.#newLiveness(models);
    const heartbeats = this.#newHeartbeats();
    this.#heartbeats = heartbeats;
    this.#services = new ServiceGroup(
      'worker',
      [
        this.#health,
        machine,
        heartbeats,
        this.#deployments,
        this.#tenants,
        this.#comparer,
        this.#versions,
        models,
        // A simulated worker has nothing to try.
        ...(this.#newRunner ? [] : [trials]),
        this.#liveness,
        ...this.#newWebhookServices(),
        this.#newAftermath(),
        // A simulated worker has no files.
        ...(this.#config.bulk.jobs > 0 && !this.#newRunner ? [this.#newBulkHost()] : []),
        ...(this.#config.sweeper ? [this.#newSweeper(), this.#newRerouter()] : []),
        ...(this.#config.steward ? [this.#steward] : []),
      ],
      (service, error) => this.#logger.error({ service, err: error }, 'did not stop cleanly'),
    );
    await this.#services.start();
    if (this.#state === 'starting') this.#state = 'ready';
    await heartbeats.beat();
    this.#logger.info({ health: this.#health.url, models: models.served.length }, 'worker ready');
  }

  async stop(): Promise<void> {
    this.#state = 'draining';
    // Told at once: no request is routed here while what is under way is finished.
    await this.#beat();
    await this.#services?.stop();
    await this.#storeClock.stop();
    await Promise.all([this.#queues.close(), this.#webhooks.queue.close()]);
    closeRedis(this.#subscriber);
    closeRedis(this.#redis);
  }

  async #openMachine(): Promise<MachineWatch> {
    const { recordedMachine, providerSwitch, devices } = this.#config;
    const watch = await MachineWatch.open({
      clock: this.#clock,
      recorded: recordedMachine,
      devices,
      onError: (err) => this.#logger.warn({ err }, 'the machine could not be probed again'),
    });
    for (const notice of watch.machine.notices) this.#logger.warn({}, notice);
    if (recordedMachine !== null || Object.keys(providerSwitch).length > 0)
      this.#logger.warn({ recordedMachine, providerSwitch }, 'this worker pretends to be another machine');
    return watch;
  }

  #newSteward(): Steward {
    return new Steward({
      redis: this.#redis,
      keys: this.#store.keys,
      view: this.#deployments,
      clock: this.#clock,
      metrics: this.#metrics,
      logger: this.#logger,
      onError: (error) => this.#redisError(error),
    });
  }

  #newProviderTrials({ machine }: MachineWatch): ProviderTrials {
    return new ProviderTrials({
      deviceClasses: [...new Set(machine.devices.map(({ device_class }) => device_class))],
      providerSwitch: this.#config.providerSwitch,
      clock: this.#clock,
      onFailure: (provider, reason) =>
        this.#logger.warn({ provider, reason }, 'an execution provider does not load on this machine'),
    });
  }

  #newModelHost(watch: MachineWatch, trials: ProviderTrials): ModelHost {
    return new ModelHost({
      config: this.#config,
      providers: (deviceClass) => trials.of(deviceClass),
      ...(this.#newRunner ? { newRunner: this.#newRunner } : {}),
      ...(this.#inspect ? { inspect: this.#inspect } : {}),
      machine: watch,
      deployments: this.#deployments,
      fleet: this.#fleet,
      redis: this.#redis,
      subscriber: this.#subscriber,
      store: this.#store,
      clock: this.#clock,
      rates: this.#rates,
      logger: this.#logger,
      observers: { metrics: this.#metrics, life: this.#life, versions: this.#versions },
      announce: () => this.#announcements.make(),
      handle: (job) =>
        processJob(job, {
          workerId: this.#config.workerId,
          acquire: (wanted) => (this.#models as ModelHost).acquire(wanted),
          ring: (partition) => this.#models?.ring(partition),
          life: this.#life,
          now: () => this.#clock.now(),
          giveUp: (ticket, error) => this.#giveUp(ticket, error),
          acceptedAnew: (ticket, partition) => acceptedAnew(ticket, partition, this.#store),
        }),
      onGivenUp: (ticket, reason) => {
        const error = itemError('worker_lost', `given up by the queue: ${reason}`);
        // Should it fail, the sweeper finds a request without a job.
        this.#giveUp(ticket, error).catch((failure: Error) => this.#redisError(failure));
      },
      onRedisError: (error) => this.#redisError(error),
    });
  }

  /** @returns whether its request is, or was, still there */
  async #giveUp({ requestId, nonce }: JobTicket, error: ItemError): Promise<boolean> {
    const verdict = await this.#store.end(requestId, 'failed', error, { nonce });
    return verdict.changed || verdict.status !== null;
  }

  #newHeartbeats(): HeartbeatWriter {
    return new HeartbeatWriter({
      redis: this.#redis,
      keys: this.#store.keys,
      workerId: this.#config.workerId,
      snapshot: () => this.#snapshot(),
      onError: (error) => this.#redisError(error),
      clock: this.#clock,
    });
  }

  async #beat(): Promise<void> {
    await this.#heartbeats?.beat().catch((error: Error) => this.#redisError(error));
  }

  #newSweeper(): Sweeper {
    const isTakenOut = (model: string): boolean => !this.#deployments.of(model).registered;
    const letters = new LetterStore(this.#redis, this.#store.keys);
    return new Sweeper({ ...this.#repairDeps(), isTakenOut, letters, coalescing: this.#newCoalescing() });
  }

  #newRerouter(): Rerouter {
    return new Rerouter(this.#repairDeps());
  }

  #newAftermath(): Aftermath {
    return new Aftermath({
      ...{ redis: this.#redis, subscriber: this.#subscriber, store: this.#store, clock: this.#clock },
      handlers: afterEnd({
        ...{ store: this.#store, outbox: this.#webhooks.outbox, coalescing: this.#newCoalescing() },
      }),
      onError: (error) => this.#redisError(error),
    });
  }

  #newCoalescing(): Coalescing {
    return new Coalescing({
      ...this.#repairDeps(),
      cache: new CacheStore(this.#redis, this.#store.keys),
      ring: (partition) => this.#models?.ring(partition),
    });
  }

  #newWebhookServices(): Service[] {
    const { webhooks, keyspace, lockMs } = this.#config;
    if (!webhooks.deliver) return [];
    const shared = { clock: this.#clock, onError: (error: Error) => this.#redisError(error) };
    const { deliveries, queue } = this.#webhooks;
    const sender = new WebhookSender({ allowed: webhooks.allowed, clock: this.#clock });
    const delivering = new WebhookDeliveries({
      ...{ ...shared, ...this.#webhooks, sender, lockMs },
      ...{ redis: this.#redis, keyPrefix: keyspace.prefix, metrics: this.#metrics, life: this.#life },
      ...{ concurrency: webhooks.concurrency, keptMs: webhooks.keptMs },
      ...(webhooks.schedule.length > 0 ? { schedule: webhooks.schedule } : {}),
    });
    return [delivering, new OverdueSweep({ ...shared, deliveries, queue })];
  }

  #newBulkHost(): BulkHost {
    const { bulk, lockMs, drainMs, redisUrl, keyspace, modelsFolder } = this.#config;
    const { priorityStepRows, logLevel, logPretty, runnerEnvironment } = this.#config;
    return new BulkHost({
      ...{ jobs: bulk.jobs, redis: this.#redis, keys: this.#store.keys, lockMs, drainMs },
      ...{ clock: this.#clock, logger: this.#logger, metrics: this.#metrics },
      init: {
        ...{ redisUrl, keyspace, filesFolder: bulk.filesFolder, modelsFolder, priorityStepRows },
        ...{ roots: bulk.roots, allowed: bulk.allowed, logLevel, logPretty },
      },
      environment: runnerEnvironment,
      onError: (error) => this.#redisError(error),
    });
  }

  #repairDeps() {
    return {
      redis: this.#redis,
      store: this.#store,
      queues: this.#queues,
      clock: this.#clock,
      metrics: this.#metrics,
      life: this.#life,
      onError: (error: Error) => this.#redisError(error),
    };
  }

  #newLiveness(models: ModelHost): Liveness {
    return new Liveness({
      clock: this.#clock,
      stallMs: this.#config.stallMs,
      everyMs: Math.min(LIVENESS_EVERY_MS, this.#config.stallMs / 2),
      facts: () => this.#progress(models),
      onChange: (reason) => {
        this.#metrics.workerHealthy.set({}, reason === null ? 1 : 0);
        if (reason === null) this.#logger.info({}, 'making progress again');
        else this.#logger.error({ reason }, 'unhealthy: a backlog and no progress');
      },
    });
  }

  async #progress(models: ModelHost): Promise<ProgressFacts[]> {
    const held = models.served.map((served) => ({
      subject: `${served.source.modelId} on ${served.source.device}`,
      inHand: served.backlog,
      waiting: 0,
      lastProgressAt: served.lastProgressAt,
    }));
    const queued = models.consumers.map(async (consumer) => {
      const { partition } = consumer.options;
      const { waiting } = await this.#queues.of(partition).depth();
      const served = models.served.filter((candidate) => candidate.source.model === partition.model);
      const progress = Math.max(
        consumer.lastProgressAt,
        ...served.map((candidate) => candidate.lastProgressAt),
      );
      return { subject: partitionLabel(partition), inHand: 0, waiting, lastProgressAt: progress };
    });
    return [...held, ...(await Promise.all(queued))];
  }

  #snapshot(): WorkerHeartbeat {
    const { rowsPerSecond, batchMean } = this.#rates.rates();
    const reason = this.#liveness?.reason ?? null;
    return {
      worker_id: this.#config.workerId,
      host: hostname(),
      pid: process.pid,
      remuda_version: VERSION,
      started_at: new Date(this.#startedAt).toISOString(),
      at: new Date(this.#clock.now()).toISOString(),
      state: this.#state,
      healthy: reason === null,
      unhealthy_reason: reason,
      ...(this.#machine ? machineStatus(this.#machine.machine) : NOT_PROBED),
      deployments_revision: this.#models?.revision ?? 0,
      rss_bytes: process.memoryUsage.rss(),
      devices: this.#models?.deviceStates() ?? [],
      models: this.#models?.modelStates() ?? [],
      in_flight: this.#models?.served.reduce((sum, served) => sum + served.backlog, 0) ?? 0,
      rows_per_s: Math.round(rowsPerSecond * 100) / 100,
      batch_mean: Math.round(batchMean * 100) / 100,
      rows_total: this.#rates.rowsTotal,
    };
  }

  #live(): Health {
    const reason = this.#liveness?.reason ?? null;
    return {
      status: reason === null ? 'ok' : 'unhealthy',
      checks: { progress: { ok: reason === null, detail: reason ?? 'no backlog, or progress' } },
    };
  }

  #ready(): Health {
    const redis = this.#redis.status === 'ready';
    const failed = this.#models?.modelStates().filter((model) => model.state === 'failed') ?? [];
    const ready = this.#state === 'ready' && redis;
    return {
      status: this.#state === 'draining' ? 'draining' : ready ? 'ok' : 'unhealthy',
      checks: {
        redis: { ok: redis, detail: redis ? 'connected' : `connection is ${this.#redis.status}` },
        models: {
          ok: failed.length === 0,
          detail:
            failed.map(({ model, version, reason }) => `${model}@${version}: ${reason}`).join('; ') ||
            `${this.#models?.served.length ?? 0} loaded`,
        },
      },
    };
  }

  #redisError(error: Error): void {
    this.#metrics.redisErrors.inc({
      role: 'worker',
      reason: (error as NodeJS.ErrnoException).code ?? error.name,
    });
    this.#logRedis(error);
  }
}
