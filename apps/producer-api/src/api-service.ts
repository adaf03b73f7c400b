/**
 * The API as a Service: its connections, the use cases and the server, started and stopped in order. A Redis that is
 * away does not keep it from starting: it answers 503 until Redis is there.
 */

import { type Clock, systemClock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import { lifeLog } from '@remuda/core/observability/events';
import type { Logger } from '@remuda/core/observability/logger';
import { createMetrics, type Metrics } from '@remuda/core/observability/metrics';
import { sparseErrors } from '@remuda/core/observability/sparse-log';
import { createRequestUseCases, type RequestUseCaseService } from '@remuda/core/requests/use-cases';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import type { FastifyInstance } from 'fastify';
import type { ApiConfig } from './config.js';
import { Drain } from './drain.js';
import { keepQueueGauges } from './queue-gauges.js';
import { createServer } from './server.js';
import { keepUsageGauges } from './usage-gauges.js';

/** Before the first call: long enough for a Redis that starts beside us, short enough not to look hung. */
const REDIS_PATIENCE_MS = 3_000;

export interface ApiServiceOptions {
  config: ApiConfig;
  logger: Logger;
  metrics?: Metrics;
  clock?: Clock;
}

export class ApiService implements Service {
  readonly name = 'api';
  readonly #config: ApiConfig;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #drain = new Drain();
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #useCases: RequestUseCaseService;
  readonly #app: FastifyInstance;
  #url: string | undefined;
  #stopping: Promise<void> | undefined;

  constructor({ config, logger, metrics = createMetrics(), clock = systemClock }: ApiServiceOptions) {
    this.#config = config;
    this.#logger = logger;
    this.#clock = clock;
    this.#redis = this.#connect('api');
    this.#subscriber = this.#connect('subscriber');
    const life = lifeLog(logger);
    this.#useCases = createRequestUseCases({
      redis: this.#redis,
      subscriber: this.#subscriber,
      keys: new Keys(config.keyspace),
      repository: config.modelsFolder,
      logger,
      life,
      metrics,
      resultTtlS: config.resultTtlS,
      limits: config.limits,
      clock,
    });
    keepQueueGauges(metrics, this.#useCases, this.#useCases.queues);
    keepUsageGauges(metrics, this.#useCases.store, this.#useCases.admission, config.limits);
    this.#app = createServer({
      useCases: this.#useCases,
      admin: this.#useCases.admin,
      ping: () => this.#ping(),
      logger,
      life,
      metrics,
      drain: this.#drain,
      maxBodyBytes: config.maxBodyBytes,
      maxJsonBytes: config.maxJsonBytes,
    });
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
    await this.#useCases.start();
    const { host, port } = this.#config;
    this.#url = await this.#app.listen({ host, port });
    this.#logger.info({ url: this.#url }, 'API listens');
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
    await this.#useCases.stop();
    closeRedis(this.#subscriber);
    closeRedis(this.#redis);
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
