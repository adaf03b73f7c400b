/**
 * The models of this worker, put together: a runner process for each device, a slot for each version on each device,
 * the consumers of their queues, and what makes all of it follow the desired state. A model that cannot be loaded says
 * why and hinders no other.
 */
import { classOf } from '@remuda/core/devices/affinity-rules';
import type { Device } from '@remuda/core/devices/machine';
import type { MachineWatch } from '@remuda/core/devices/machine-watch';
import type { FleetGlance } from '@remuda/core/fleet/fleet-glance';
import type { ModelSource } from '@remuda/core/harness/harness';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { DeploymentView } from '@remuda/core/models/deployment-view';
import { modelServedElsewhere } from '@remuda/core/models/served-elsewhere';
import type { Logger } from '@remuda/core/observability/logger';
import type { Observers } from '@remuda/core/observability/timings';
import type { JobConsumer, JobTicket, TakenJob } from '@remuda/core/queue/job-queue';
import type { Partition } from '@remuda/core/queue/partitions';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import type { Redis } from '@remuda/core/store/redis';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { DeviceStatus, LoadedModel, ModelSignature } from '@remuda/schemas';
import { type Acquired, VersionDesk, type WantedVersion } from './acquire-version.js';
import type { WorkerConfig } from './config.js';
import { consumerNeeds, mayServe, unattendedQueues } from './consumer-needs.js';
import { Converger } from './converger.js';
import { DeviceRules } from './device-rules.js';
import { newDeviceRunner } from './device-runner.js';
import { deviceStatus } from './device-status.js';
import { Doorbell } from './doorbell.js';
import { faultsOf } from './faulty-models.js';
import { FetchedModels } from './fetched-models.js';
import { HostedDevice, type ModelRunner } from './hosted-device.js';
import { keyOfPair, ModelConsumers } from './model-consumers.js';
import { PublishedSettings } from './published-settings.js';
import type { RateMeter } from './rate-meter.js';
import { exposeServed } from './served-gauges.js';
import { ServedModel } from './served-model.js';
import { SignatureWishes } from './signature-wishes.js';
import { SlotTable } from './slot-table.js';
import type { SlotDeps, VersionSlot } from './version-slot.js';
import { endsWithin } from './within-time.js';
import { WorkerRepository } from './worker-repository.js';

export interface ModelHostDeps {
  config: WorkerConfig;
  /** As last probed: free memory and utilisation change. */
  machine: Pick<MachineWatch, 'machine' | 'look'>;
  deployments: DeploymentView;
  fleet: FleetGlance;
  redis: Redis;
  /** A connection of role `subscriber`. */
  subscriber: Redis;
  store: RequestStore;
  clock: Clock;
  rates: RateMeter;
  logger: Logger;
  observers: Observers;
  /** Writes a heartbeat soon; resolves when one with the present states has been written. */
  announce(): Promise<void>;
  handle(job: TakenJob): Promise<void>;
  onGivenUp(ticket: JobTicket, reason: string): void;
  onRedisError(error: Error): void;
  /** What came of trying the provider of a device class. */
  providers?(deviceClass: string): DeviceStatus['providers'];
  /** Another runner than the real one, for tests and measurements. */
  newRunner?(device: Device): ModelRunner;
  /** What reads a signature in its place. */
  inspect?(source: ModelSource): Promise<ModelSignature>;
}

/** How long a stop waits for Redis at each step. */
const CLOSE_MS = 2_000;

export class ModelHost implements Service {
  readonly name = 'models';
  readonly #deps: ModelHostDeps;
  readonly #devices: HostedDevice[];
  readonly #slots: SlotTable;
  readonly #consumers: ModelConsumers;
  readonly #fetched: FetchedModels;
  readonly #converger: Converger;
  readonly #doorbell: Doorbell;
  readonly #desk: VersionDesk;
  readonly #rules: DeviceRules;
  readonly #settings: PublishedSettings;
  readonly #wishes: SignatureWishes;
  #stopping = false;

  constructor(deps: ModelHostDeps) {
    this.#deps = deps;
    this.#rules = new DeviceRules(deps.machine);
    this.#devices = deps.machine.machine.devices.map((device) => this.#newDevice(device));
    this.#tellUnusedBudgets();
    this.#slots = new SlotTable(this.#slotDeps());
    this.#consumers = this.#newConsumers();
    this.#fetched = new FetchedModels({
      cacheFolder: deps.config.cacheFolder,
      secret: deps.config.secret,
      clock: deps.clock,
      logger: deps.logger,
      onFetched: () => this.#converger.turnSoon(),
    });
    this.#converger = this.#newConverger();
    this.#doorbell = this.#newDoorbell();
    this.#desk = new VersionDesk({
      workerId: deps.config.workerId,
      slots: this.#slots,
      isStopping: () => this.#stopping,
      deployment: (model) => deps.deployments.of(model),
      fleet: () => this.#fleet(),
    });
    const publishing = { redis: deps.redis, keys: deps.store.keys, onError: deps.onRedisError };
    this.#settings = new PublishedSettings(publishing);
    this.#wishes = new SignatureWishes({
      ...publishing,
      subscriber: deps.subscriber,
      logger: deps.logger,
      sourceOf: (model, version) => this.#sourceOf(model, version),
      ...(deps.inspect ? { inspect: deps.inspect } : {}),
    });
    exposeServed(deps.observers.metrics, () => this.served);
  }

  get consumers(): readonly JobConsumer[] {
    return this.#consumers.all;
  }

  get served(): readonly ServedModel[] {
    return this.#slots.all.flatMap((slot) => slot.served ?? []);
  }

  /** Newest desired state that was taken in. */
  get revision(): number {
    return this.#converger.revision;
  }

  /** Resolves when every version that is wanted from the start is either served or known to have failed. */
  async start(): Promise<void> {
    await Promise.all(this.#devices.map(({ runner }) => runner.start()));
    await this.#converger.start();
    await Promise.all(this.#slots.all.map((slot) => slot.settled()));
    await Promise.all([this.#doorbell.start(), this.#wishes.start()]);
  }

  /**
   * What is wanted may have changed.
   * @param look whether the files may have changed too
   */
  turnSoon(options: { look: boolean }): void {
    this.#converger.turnSoon(options);
  }

  /** Gets a job the version that it names. */
  acquire(wanted: WantedVersion): Promise<Acquired> {
    return this.#desk.acquire(wanted);
  }

  /** Tells all workers that a job waits. */
  ring(partition: Partition): void {
    this.#doorbell.ring(partition).catch(this.#deps.onRedisError);
  }

  modelStates(): LoadedModel[] {
    // What no slot tells of.
    const faults = [...this.#converger.models.values()].flatMap((model) => faultsOf(model, this.#slots));
    return [...this.#slots.all.map((slot) => slot.report()), ...faults];
  }

  deviceStates(): DeviceStatus[] {
    const probed = this.#deps.machine.machine.devices;
    return this.#devices.map(({ device, runner, budgetBytes, memoryHeld }) =>
      deviceStatus(probed.find((one) => one.device === device) as Device, runner.status(), {
        memory_budget_bytes: budgetBytes,
        memory_used_bytes: memoryHeld,
        providers: this.#deps.providers?.(device.split(':')[0] as string) ?? [],
      }),
    );
  }

  /**
   * Takes up nothing more, hands back what waits, lets batches under way finish for `drainMs`; what is still running
   * then is cut off with its runner and handed back too.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#fetched.stop();
    await Promise.all([this.#doorbell.stop(), this.#wishes.stop(), this.#converger.stop()]);
    await this.#briefly(this.#consumers.pause());
    const drained = Promise.all(this.served.map((served) => served.drain()));
    const { config, clock, logger } = this.#deps;
    if (!(await endsWithin(config.drainMs, drained, clock)))
      logger.warn({ drain_ms: config.drainMs }, 'batches under way are cut off');
    for (const served of this.served) served.stop();
    await Promise.all(this.#devices.map(({ runner }) => runner.stop()));
    await drained;
    await this.#briefly(this.#consumers.close());
  }

  /** What needs an answer of Redis must not hold up the stop while Redis is away: locks run out by themselves. */
  async #briefly(work: Promise<unknown>): Promise<void> {
    const { clock, logger, onRedisError } = this.#deps;
    if (await endsWithin(CLOSE_MS, work.catch(onRedisError), clock)) return;
    logger.warn({ close_ms: CLOSE_MS }, 'queues were left without an answer of Redis');
  }

  #tellUnusedBudgets(): void {
    const known = this.#devices.map(({ device }) => device);
    const unused = [...this.#deps.config.memoryBudgets.keys()].filter((device) => !known.includes(device));
    if (unused.length === 0) return;
    this.#deps.logger.warn(
      { unused, known },
      'REMUDA_WORKER_MEMORY_BUDGET names devices that this worker does not serve on',
    );
  }

  #newDevice(device: Device): HostedDevice {
    const { config, newRunner } = this.#deps;
    return new HostedDevice({
      device: device.device,
      deviceClass: classOf(device.device_class),
      runner: newRunner?.(device) ?? this.#newRunner(device),
      budgetBytes: config.memoryBudgets.get(device.device) ?? null,
    });
  }

  #newRunner(device: Device): ModelRunner {
    const { config, logger, observers } = this.#deps;
    return newDeviceRunner(device, {
      config,
      logger,
      metrics: observers.metrics,
      onModelLost: (modelId, error) => this.#slots.at(modelId, device.device)?.lost(error),
    });
  }

  #slotDeps(): SlotDeps {
    const { config, clock, logger, redis, store, announce } = this.#deps;
    return {
      workerId: config.workerId,
      clock,
      logger,
      idleMs: config.idleMs,
      drainMs: config.drainMs,
      announce,
      fleet: () => this.#fleet(),
      isStopping: () => this.#stopping,
      checkRule: (rule, { device }) => this.#rules.check(rule, device),
      publish: (signature, source) => publishSignature(redis, store.keys, signature, source.config),
      serve: (source, signature, { deviceClass, runner, gate }) =>
        new ServedModel({
          ...this.#deps,
          source,
          signature,
          deviceClass,
          runner,
          gate,
          bulkShare: config.bulkShare,
          workerId: config.workerId,
        }),
      onChange: (slot) => this.#changed(slot),
      onSettled: () => this.#converger.turnSoon({ look: false }),
    };
  }

  #newConsumers(): ModelConsumers {
    const { config, logger, onRedisError } = this.#deps;
    return new ModelConsumers({
      ...this.#deps,
      keyPrefix: config.keyspace.prefix,
      lockMs: config.lockMs,
      mayServe: (model, deviceClass) => mayServe(this.#slots, model, deviceClass),
      onLockLost: (ids) => logger.warn({ request_ids: ids }, 'locks lost: others may have these jobs now'),
      onError: onRedisError,
    });
  }

  #newConverger(): Converger {
    const { config, deployments, clock, logger } = this.#deps;
    return new Converger({
      repository: new WorkerRepository(config.modelsFolder, this.#fetched),
      deployments,
      slots: this.#slots,
      devices: this.#devices,
      fleet: async () => this.#fleet(),
      deviceFacts: () => this.#rules.facts,
      models: config.models,
      mostInstances: config.instances,
      providerSwitch: config.providerSwitch,
      clock,
      logger,
      onTurn: () => this.#afterTurn(),
    });
  }

  #newDoorbell(): Doorbell {
    const { config, redis, subscriber, store, clock, onRedisError } = this.#deps;
    return new Doorbell({
      redis,
      subscriber,
      keys: store.keys,
      clock,
      unattended: () =>
        unattendedQueues(this.#slots, (model, deviceClass) => this.#consumers.isOpen(model, deviceClass)),
      isServed: async ({ model, deviceClass }) =>
        modelServedElsewhere({ workerId: config.workerId, model, deviceClass, workers: await this.#fleet() }),
      onRing: ({ model, deviceClass }) => {
        if (mayServe(this.#slots, model, deviceClass) && !this.#consumers.isOpen(model, deviceClass)) {
          this.#consumers.open({ model, deviceClass, concurrency: 0 });
        }
      },
      onError: onRedisError,
    });
  }

  #afterTurn(): void {
    this.#tendConsumers();
    this.#settings.follow(this.#slots.all.flatMap(({ source }) => source ?? []));
  }

  #sourceOf(model: string, version: string): ModelSource | undefined {
    const slot = this.#slots.of(model).find((one) => one.version === version && one.source !== null);
    return slot?.source ?? undefined;
  }

  /** Consumers for what is loaded; those of what is not are closed after a while. */
  #tendConsumers(): void {
    if (this.#stopping) return;
    const needs = consumerNeeds(this.#slots);
    for (const need of needs) this.#consumers.open(need);
    this.#consumers.closeIdle(new Set(needs.map(keyOfPair)));
  }

  #changed({ model, version, device, isReady }: VersionSlot): void {
    const labels = { model, version, device_class: device.deviceClass };
    this.#deps.observers.metrics.modelsLoaded.set(labels, isReady ? 1 : 0);
    if (isReady) this.#tendConsumers();
    this.#deps.announce().catch(this.#deps.onRedisError);
  }

  #fleet() {
    return this.#deps.fleet.workers();
  }
}
