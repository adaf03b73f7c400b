/**
 * What this worker has loaded: one runner process for each device, each model version on every device that its rules
 * allow, and for each model the consumers of its queues. A model that cannot be loaded says why and hinders no other.
 */

import { allowedClasses } from '@remuda/core/devices/affinity-rules';
import type { Device, Machine } from '@remuda/core/devices/machine';
import { toItemError } from '@remuda/core/errors';
import { RunnerProcess } from '@remuda/core/inference/runner-process';
import { SharedGate } from '@remuda/core/inference/shared-gate';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';
import type { Observers } from '@remuda/core/observability/timings';
import { JobConsumer, type TakenJob } from '@remuda/core/queue/job-queue';
import { LANES } from '@remuda/core/queue/partitions';
import { type RepositoryModel, scanRepository, toModelSource } from '@remuda/core/repository/manifests';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import type { Redis } from '@remuda/core/store/redis';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { DeviceClass, DeviceStatus, LoadedModel } from '@remuda/schemas';
import type { WorkerConfig } from './config.js';
import { deviceStatus } from './device-status.js';
import type { RateMeter } from './rate-meter.js';
import { exposeServed, ServedModel } from './served-model.js';

export interface ModelHostDeps {
  config: WorkerConfig;
  devices: readonly Device[];
  /** As last probed: free memory and utilisation change. */
  machine(): Machine;
  redis: Redis;
  store: RequestStore;
  clock: Clock;
  rates: RateMeter;
  logger: Logger;
  observers: Observers;
  handle(job: TakenJob): Promise<void>;
  onGivenUp(requestId: string, reason: string): void;
  onRedisError(error: Error): void;
}

/** How long a stop waits for Redis at each step. */
const CLOSE_MS = 2_000;

/** A runner's own logs, errors and restarts are of this device. */
interface HostedDevice extends Device {
  runner: RunnerProcess;
  /** Suspects of any model run alone in the whole process. */
  gate: SharedGate;
}

export class ModelHost implements Service {
  readonly name = 'models';
  readonly #deps: ModelHostDeps;
  readonly #devices: HostedDevice[];
  readonly #states = new Map<string, LoadedModel>();
  readonly #served = new Map<string, ServedModel[]>();
  readonly #consumers: JobConsumer[] = [];
  #draining = false;

  constructor(deps: ModelHostDeps) {
    this.#deps = deps;
    this.#devices = deps.devices.map((device) => ({
      ...device,
      runner: this.#newRunner(device),
      gate: new SharedGate(),
    }));
    exposeServed(deps.observers.metrics, () => this.served);
  }

  get consumers(): readonly JobConsumer[] {
    return this.#consumers;
  }

  get served(): readonly ServedModel[] {
    return [...this.#served.values()].flat();
  }

  /** Resolves when every model is either served or known to have failed. */
  async start(): Promise<void> {
    await Promise.all(this.#devices.map(({ runner }) => runner.start()));
    const { models } = await scanRepository(this.#deps.config.modelsFolder);
    const wanted = models.filter((model) => this.#isWanted(model.name));
    this.#warnOfUnknown(models);
    await Promise.all(wanted.map((model) => this.#host(model)));
  }

  /** The least busy instance of a version on this worker. */
  find(model: string, version: string): ServedModel | undefined {
    const candidates = this.#served.get(`${model}@${version}`) ?? [];
    return candidates.reduce<ServedModel | undefined>(
      (best, served) => (best === undefined || served.backlog < best.backlog ? served : best),
      undefined,
    );
  }

  modelStates(): LoadedModel[] {
    return [...this.#states.values()].map((state) => {
      const served = this.#served.get(`${state.model}@${state.version}`);
      return { ...state, ...served?.find(({ source }) => source.device === state.device)?.facts() };
    });
  }

  deviceStates(): DeviceStatus[] {
    const probed = this.#deps.machine().devices;
    return this.#devices.map(({ runner, gate: _, ...hosted }) => {
      const now = probed.find(({ device }) => device === hosted.device) ?? hosted;
      return deviceStatus(now, runner.status());
    });
  }

  /**
   * Takes up nothing more, hands back what waits, lets batches under way finish for `drainMs`; what is still running
   * then is cut off with its runner and handed back too.
   */
  async stop(): Promise<void> {
    this.#draining = true;
    await this.#briefly(Promise.all(this.#consumers.map((consumer) => consumer.pause())));
    const drained = Promise.all(this.served.map((served) => served.drain()));
    const late = await this.#isLate(drained, this.#deps.config.drainMs);
    if (late)
      this.#deps.logger.warn({ drain_ms: this.#deps.config.drainMs }, 'batches under way are cut off');
    for (const served of this.served) served.stop();
    await Promise.all(this.#devices.map(({ runner }) => runner.stop()));
    await drained;
    await this.#briefly(Promise.all(this.#consumers.map((consumer) => consumer.close())));
  }

  /** What needs an answer of Redis must not hold up the stop while Redis is away: locks run out by themselves. */
  async #briefly(work: Promise<unknown>): Promise<void> {
    const late = await this.#isLate(work.catch(this.#deps.onRedisError), CLOSE_MS);
    if (late) this.#deps.logger.warn({ close_ms: CLOSE_MS }, 'queues were left without an answer of Redis');
  }

  #isLate(work: Promise<unknown>, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ms, () => resolve(true));
      void work.then(() => {
        cancel();
        resolve(false);
      });
    });
  }

  #newRunner({ device, device_class }: Device): RunnerProcess {
    const { config, logger, observers } = this.#deps;
    const log = logger.child({ device });
    return new RunnerProcess({
      device,
      store: { url: config.redisUrl, keyspace: config.keyspace },
      stopGraceMs: config.stopGraceMs,
      log: (level, fields, message) => log[level](fields, message),
      onLost: (end) => {
        log.warn({ ...end }, 'the runner was lost and is replaced');
        observers.metrics.runnerRestarts.inc({ device_class, reason: end.reason });
      },
      onModelLost: (modelId, error) => this.#lose(modelId, device, error.message),
    });
  }

  #isWanted(name: string): boolean {
    const { models } = this.#deps.config;
    return models.length === 0 || models.includes(name);
  }

  #warnOfUnknown(models: readonly RepositoryModel[]): void {
    const known = models.map((model) => model.name);
    for (const name of this.#deps.config.models.filter((wanted) => !known.includes(wanted))) {
      this.#deps.logger.error(
        { model: name, known },
        'REMUDA_WORKER_MODELS names a model that is not in the repository',
      );
    }
  }

  async #host(model: RepositoryModel): Promise<void> {
    for (const problem of model.problems) {
      this.#deps.logger.error({ model: model.name, file: problem.file }, problem.message);
      if (!model.config || problem.version) {
        this.#setState(model.name, problem.version ?? '', 'cpu', {
          state: 'failed',
          reason: problem.message,
        });
      }
    }
    if (!model.config) return;
    const classes = allowedClasses(model.config);
    const allowed = this.#devices.filter(({ device_class }) => classes.includes(device_class as DeviceClass));
    const complete = model.versions.filter((version) => version.complete);
    await Promise.all(
      allowed.flatMap((device) => complete.map((version) => this.#load(model, version.version, device))),
    );
    if (this.#draining) return;
    for (const { device_class } of allowed) this.#consume(model.name, device_class as DeviceClass);
  }

  async #load(model: RepositoryModel, version: string, device: HostedDevice): Promise<void> {
    const { config, logger, redis, store } = this.#deps;
    const source = toModelSource(model, version, device.device);
    source.providerSwitch = config.providerSwitch;
    if (config.instances !== undefined) source.config = { ...source.config, instances: config.instances };
    this.#setState(model.name, version, device.device, { state: 'loading', digest: source.digest });
    try {
      const { signature, provider } = await device.runner.load(source);
      const served = new ServedModel({
        ...this.#deps,
        source,
        signature,
        deviceClass: device.device_class,
        workerId: config.workerId,
        runner: device.runner,
        gate: device.gate,
      });
      this.#served.set(source.modelId, [...(this.#served.get(source.modelId) ?? []), served]);
      await publishSignature(redis, store.keys, signature, source.config);
      this.#setState(model.name, version, device.device, { state: 'ready', provider, digest: source.digest });
      logger.info({ model: model.name, version, device: device.device, provider }, 'model ready');
    } catch (error) {
      const reason = toItemError(error, 'model_load_failed').message;
      this.#setState(model.name, version, device.device, { state: 'failed', reason, digest: source.digest });
      logger.error(
        { model: model.name, version, device: device.device, reason },
        'model could not be loaded',
      );
    }
  }

  /** One consumer for each lane of a model, unless there is one or no version of it could be loaded. */
  #consume(model: string, deviceClass: DeviceClass): void {
    const served = this.served.filter((candidate) => candidate.source.model === model);
    const taken = this.#consumers.some(
      ({ options: { partition } }) => partition.model === model && partition.deviceClass === deviceClass,
    );
    if (served.length === 0 || taken) return;
    const { config, redis, handle, onGivenUp, onRedisError, logger } = this.#deps;
    const concurrency = served.reduce((sum, candidate) => sum + candidate.wantedInFlight, 0);
    for (const lane of LANES) {
      const consumer = new JobConsumer({
        partition: { model, deviceClass, lane },
        redis,
        keyPrefix: config.keyspace.prefix,
        concurrency,
        lockMs: config.lockMs,
        handle,
        onGivenUp,
        onLockLost: (ids) => logger.warn({ request_ids: ids }, 'locks lost: others may have these jobs now'),
        onError: onRedisError,
      });
      this.#consumers.push(consumer);
      consumer.start();
    }
  }

  #setState(model: string, version: string, device: string, change: Partial<LoadedModel>): void {
    const key = `${model}@${version}@${device}`;
    const blank: LoadedModel = {
      model,
      version,
      digest: '',
      device,
      provider: '',
      state: 'loading',
      reason: null,
      load_mode: 'eager',
      instances: 1,
      memory_bytes: null,
      last_used_at: null,
      backlog_rows: 0,
      seconds_per_row: null,
      run_seconds: null,
      breaker: 'closed',
    };
    const state = { ...(this.#states.get(key) ?? blank), ...change };
    this.#states.set(key, state);
    const labels = { model, version, device_class: device.split(':')[0] as string };
    this.#deps.observers.metrics.modelsLoaded.set(labels, state.state === 'ready' ? 1 : 0);
  }

  /** A model that was served and could not be loaded again after its runner died. */
  #lose(modelId: string, device: string, reason: string): void {
    const [model, version] = modelId.split('@') as [string, string];
    const left = (this.#served.get(modelId) ?? []).filter((served) => served.source.device !== device);
    this.#served.set(modelId, left);
    this.#setState(model, version, device, { state: 'failed', reason });
    this.#deps.logger.error({ model, version, device, reason }, 'model lost: it could not be loaded again');
  }
}
