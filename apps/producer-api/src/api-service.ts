/**
 * The API as a Service: its connections, the use cases and the server, started and stopped in order. A Redis that is
 * away does not keep it from starting: it answers 503 until Redis is there.
 */

import type { Server } from 'node:https';
import { type AccessService, createAccess } from '@remuda/core/access/access';
import type { BulkFiles, BulkUseCases } from '@remuda/core/bulk/bulk-use-cases';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import { type LifeLog, lifeLog } from '@remuda/core/observability/events';
import type { Logger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import { sparseErrors } from '@remuda/core/observability/sparse-log';
import { Sweeper } from '@remuda/core/requests/sweep-requests';
import { createRequestUseCases, type RequestUseCaseService } from '@remuda/core/requests/use-cases';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import { ReplicaWait } from '@remuda/core/store/replica-wait';
import { StoreClock } from '@remuda/core/store/store-clock';
import type { FastifyInstance } from 'fastify';
import { type BulkParts, bulkParts } from './bulk-parts.js';
import type { LetsIn } from './caller.js';
import type { ApiConfig } from './config.js';
import { Drain } from './drain.js';
import { keepQueueGauges } from './queue-gauges.js';
import { createServer } from './server.js';
import { CertificateWatch, readTlsFiles, type TlsFiles } from './tls.js';
import { keepUsageGauges } from './usage-gauges.js';
import { whoIsLetIn } from './who-is-let-in.js';

/** Before the first call: long enough for a Redis that starts beside us, short enough not to look hung. */
const REDIS_PATIENCE_MS = 3_000;

/**
 * Connections that may wait to be accepted, as far as the system allows (net.core.somaxconn). With Node's 511, clients who
 * come by the thousand are dropped and try again only seconds later.
 */
const BACKLOG = 4_096;

export interface ApiServiceOptions {
  config: ApiConfig;
  logger: Logger;
  metrics?: Metrics;
  /** Default: that of Redis, as store-clock.ts knows it. */
  clock?: Clock;
  /** Makes the use cases of bulk jobs around the file store; default: those of the fleet. */
  makeBulk?: (files: BulkFiles) => BulkUseCases;
}

export class ApiService implements Service {
  readonly name = 'api';
  readonly #config: ApiConfig;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #storeClock: StoreClock;
  readonly #drain = new Drain();
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  /** Where replicas are waited for. */
  readonly #replicas: Redis | undefined;
  readonly #useCases: RequestUseCaseService;
  readonly #access: AccessService;
  readonly #bulk: BulkParts;
  readonly #maintenance: Service[];
  readonly #app: FastifyInstance;
  #certificates: CertificateWatch | undefined;
  /** Nobody is let in before that is settled. */
  #letsIn: LetsIn = 'keys';
  #url: string | undefined;
  #stopping: Promise<void> | undefined;

  constructor({ config, logger, metrics = createMetrics(), clock, makeBulk }: ApiServiceOptions) {
    this.#config = config;
    this.#logger = logger;
    this.#redis = this.#connect('api');
    this.#storeClock = new StoreClock({ redis: this.#redis });
    this.#clock = clock ?? this.#storeClock;
    this.#subscriber = this.#connect('subscriber');
    this.#replicas = config.waitReplicas > 0 ? this.#connect('api') : undefined;
    const life = lifeLog(logger);
    const keys = new Keys(config.keyspace);
    const connections = { redis: this.#redis, subscriber: this.#subscriber };
    const waiting = { keys, replicas: config.waitReplicas, withinMs: config.waitReplicasMs };
    this.#access = createAccess({ ...connections, keys, logger, metrics, clock: this.#clock });
    this.#useCases = createRequestUseCases({
      ...connections,
      keys,
      replicas: this.#replicas && new ReplicaWait({ redis: this.#replicas, ...waiting }),
      repository: config.modelsFolder,
      logger,
      life,
      metrics,
      resultTtlS: config.resultTtlS,
      idempotencyTtlS: config.idempotencyTtlS,
      priorityStepRows: config.priorityStepRows,
      limits: config.limits,
      refuseHopeless: config.refuseHopeless,
      clock: this.#clock,
    });
    keepQueueGauges(metrics, this.#useCases, this.#useCases.queues, this.#useCases.letters, this.#clock);
    keepUsageGauges(metrics, this.#useCases.store, this.#useCases.admission, config.limits);
    this.#bulk = bulkParts({
      ...{ config, redis: this.#redis, keys, clock: this.#clock, logger, metrics },
      resolve: (ask) => this.#useCases.resolve(ask),
      ...(makeBulk ? { makeBulk } : {}),
    });
    this.#maintenance = config.maintenance ? [this.#newSweeper(life, metrics), ...this.#bulk.roles] : [];
    const letsIn = (): LetsIn => this.#letsIn;
    this.#app = createServer({
      useCases: this.#useCases,
      access: this.#access,
      get letsIn() {
        return letsIn();
      },
      host: config.host,
      tls: config.tls && readTlsFiles(config.tls),
      clock: this.#clock,
      admin: this.#useCases.admin,
      webhooks: this.#useCases.webhooks,
      webhookAllowed: config.webhookAllowed,
      deadLetters: this.#useCases.deadLetters,
      bulk: this.#bulk.bulk,
      locations: this.#bulk.locations,
      ping: () => this.#ping(),
      logger,
      life,
      metrics,
      drain: this.#drain,
      maxBodyBytes: config.maxBodyBytes,
      maxJsonBytes: config.maxJsonBytes,
      maxFileBytes: config.maxFileBytes,
    });
  }

  /** What each route says that a caller needs, by "METHOD /path". */
  get routeScopes(): FastifyInstance['declaredScopes'] {
    return this.#app.declaredScopes;
  }

  /** Writes now when keys were last used, rather than in half a minute. */
  writeKeyUses(): Promise<void> {
    return this.#access.writeUses();
  }

  /** Where it listens. @throws Error before it does */
  get url(): string {
    if (this.#url === undefined) throw new Error('the API does not listen yet');
    return this.#url;
  }

  async start(): Promise<void> {
    await waitUntilReady(this.#redis, REDIS_PATIENCE_MS).catch((err: unknown) => {
      this.#logger.warn({ err }, 'starting without Redis: requests are refused until it answers');
    });
    await this.#storeClock.start();
    await this.#useCases.start();
    await this.#access.start();
    await Promise.all(this.#maintenance.map((role) => role.start()));
    const { host, port, auth, tls } = this.#config;
    this.#letsIn = await whoIsLetIn({ host, auth, access: this.#access, logger: this.#logger });
    this.#url = await this.#app.listen({ host, port, backlog: BACKLOG });
    if (tls) await this.#watchCertificates(tls);
    this.#logger.info({ url: this.#url, lets_in: this.#letsIn }, 'API listens');
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** Not ready first, then closed: open waits are answered, calls under way finish, the rest is cut off. */
  async #stop(): Promise<void> {
    const { drainDelayMs, stopMs } = this.#config;
    this.#drain.begin();
    if (drainDelayMs > 0) await new Promise<void>((resolve) => this.#clock.after(drainDelayMs, resolve));
    const cancelCut = this.#clock.after(stopMs, () => {
      this.#logger.warn({ stop_ms: stopMs }, 'calls still under way are cut off');
      this.#app.server.closeAllConnections();
    });
    await this.#app.close();
    cancelCut();
    await Promise.all(this.#maintenance.map((role) => role.stop()));
    await this.#certificates?.stop();
    await this.#bulk.close();
    await this.#access.stop();
    await this.#useCases.stop();
    await this.#storeClock.stop();
    closeRedis(this.#subscriber);
    closeRedis(this.#redis);
    if (this.#replicas) closeRedis(this.#replicas);
  }

  async #watchCertificates(paths: { cert: string; key: string }): Promise<void> {
    const [logger, clock] = [this.#logger, this.#clock];
    const server = this.#app.server as unknown as Server;
    const use = (files: TlsFiles): void => server.setSecureContext(files);
    this.#certificates = new CertificateWatch({ paths, use, logger, clock });
    await this.#certificates.start();
  }

  /** Here too, so that deadlines are kept and jobs mended where no worker lives. The rerouter needs a live worker. */
  #newSweeper(life: LifeLog, metrics: Metrics): Sweeper {
    const { store, queues, deployments, letters, coalescing } = this.#useCases;
    return new Sweeper({
      ...{ letters, coalescing },
      ...{ redis: this.#redis, store, queues, metrics, life, clock: this.#clock },
      isTakenOut: (model) => !deployments.of(model).registered,
      onError: sparseErrors(this.#logger, 'a turn of the sweeper failed; the next one goes on'),
    });
  }

  #connect(role: 'api' | 'subscriber'): Redis {
    return connectRedis({
      url: this.#config.redisUrl,
      role,
      name: role,
      onError: sparseErrors(this.#logger.child({ role }), 'Redis connection failed; it is tried again'),
    });
  }

  async #ping(): Promise<void> {
    if (this.#redis.status !== 'ready') throw new Error('Redis cannot be reached');
    await this.#redis.ping();
  }
}
