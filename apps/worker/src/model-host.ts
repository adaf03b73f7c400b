/**
 * The models of this worker, put together: a runner process for each device, a slot for each version on each device,
 * the consumers of their queues, and what makes all of it follow the desired state. A model that cannot be loaded says
 * why and hinders no other.
 */
import { classOf } from '@remuda/core/devices/affinity-rules';
import { type DeviceFacts, factsOf, fitsDevice } from '@remuda/core/devices/fits-device';
import type { Device, Machine } from '@remuda/core/devices/machine';
import type { MachineWatch } from '@remuda/core/devices/machine-watch';
import type { FleetGlance } from '@remuda/core/fleet/fleet-glance';
import { RunnerProcess } from '@remuda/core/inference/runner-process';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { DeploymentView } from '@remuda/core/models/deployment-view';
import { modelServedElsewhere } from '@remuda/core/models/served-elsewhere';
import type { Logger } from '@remuda/core/observability/logger';
import type { Observers } from '@remuda/core/observability/timings';
import type { JobConsumer, TakenJob } from '@remuda/core/queue/job-queue';
import { LANES, type Partition } from '@remuda/core/queue/partitions';
import type { RepositoryModel } from '@remuda/core/repository/manifests';
import { publishSignature } from '@remuda/core/requests/published-signatures';
import type { Redis } from '@remuda/core/store/redis';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { AffinityRule, DeviceClass, DeviceStatus, LoadedModel } from '@remuda/schemas';
import { type Acquired, VersionDesk, type WantedVersion } from './acquire-version.js';
import type { WorkerConfig } from './config.js';
import { Converger } from './converger.js';
import { deviceStatus } from './device-status.js';
import { Doorbell } from './doorbell.js';
import { FetchedModels } from './fetched-models.js';
import { HostedDevice, type ModelRunner } from './hosted-device.js';
import { PassingLoadError } from './load-failure.js';
import { ModelConsumers } from './model-consumers.js';
import type { RateMeter } from './rate-meter.js';
import { exposeServed, ServedModel } from './served-model.js';
import { SlotTable } from './slot-table.js';
import { blankState, type SlotDeps, type VersionSlot } from './version-slot.js';
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
  onGivenUp(requestId: string, reason: string): void;
  onRedisError(error: Error): void;
  /** What came of trying the provider of a device class. */
  providers?(deviceClass: string): DeviceStatus['providers'];
  /** Another runner than the real one, for tests and measurements. */
  newRunner?(device: Device): ModelRunner;
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
  #facts: { machine: Machine; devices: DeviceFacts[] } | undefined;
  #stopping = false;

  constructor(deps: ModelHostDeps) {
    this.#deps = deps;
    this.#devices = deps.machine.machine.devices.map((device) => this.#newDevice(device));
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
    await this.#doorbell.start();
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
    return [...this.#slots.all.map((slot) => slot.report()), ...this.#faulty()];
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
    await Promise.all([this.#doorbell.stop(), this.#converger.stop()]);
    await this.#briefly(this.#consumers.pause());
    const drained = Promise.all(this.served.map((served) => served.drain()));
    const late = await this.#isLate(drained, this.#deps.config.drainMs);
    if (late)
      this.#deps.logger.warn({ drain_ms: this.#deps.config.drainMs }, 'batches under way are cut off');
    for (const served of this.served) served.stop();
    await Promise.all(this.#devices.map(({ runner }) => runner.stop()));
    await drained;
    await this.#briefly(this.#consumers.close());
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

  #newDevice(device: Device): HostedDevice {
    const { config, newRunner } = this.#deps;
    return new HostedDevice({
      device: device.device,
      deviceClass: classOf(device.device_class),
      runner: newRunner?.(device) ?? this.#newRunner(device),
      budgetBytes: config.memoryBudgets.get(device.device) ?? null,
    });
  }

  #newRunner({ device, device_class }: Device): RunnerProcess {
    const { config, logger, observers } = this.#deps;
    const log = logger.child({ device });
    return new RunnerProcess({
      device,
      store: { url: config.redisUrl, keyspace: config.keyspace },
      stopGraceMs: config.stopGraceMs,
      environment: config.runnerEnvironment,
      log: (level, fields, message) => log[level](fields, message),
      onLost: (end) => {
        log.warn({ ...end }, 'the runner was lost and is replaced');
        observers.metrics.runnerRestarts.inc({ device_class, reason: end.reason });
      },
      onModelLost: (modelId, error) => this.#slots.at(modelId, device)?.lost(error),
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
      checkRule: (rule, device) => this.#checkRule(rule, device),
      publish: (signature, source) => publishSignature(redis, store.keys, signature, source.config),
      serve: (source, signature, { deviceClass, runner, gate }) =>
        new ServedModel({
          ...this.#deps,
          source,
          signature,
          deviceClass,
          runner,
          gate,
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
      deviceFacts: () => this.#deviceFacts(),
      models: config.models,
      mostInstances: config.instances,
      providerSwitch: config.providerSwitch,
      clock,
      logger,
      onTurn: () => this.#tendConsumers(),
    });
  }

  #newDoorbell(): Doorbell {
    const { config, redis, subscriber, store, clock, onRedisError } = this.#deps;
    return new Doorbell({
      redis,
      subscriber,
      keys: store.keys,
      clock,
      unattended: () => this.#unattended(),
      isServed: async ({ model, deviceClass }) =>
        modelServedElsewhere({ workerId: config.workerId, model, deviceClass, workers: await this.#fleet() }),
      onRing: ({ model, deviceClass }) => {
        if (this.#mayServe(model, deviceClass) && !this.#consumers.isOpen(model, deviceClass)) {
          this.#consumers.open({ model, deviceClass, concurrency: 0 });
        }
      },
      onError: onRedisError,
    });
  }

  #mayServe(model: string, deviceClass: DeviceClass): boolean {
    return this.#slots.of(model).some((slot) => slot.device.deviceClass === deviceClass);
  }

  /** Queues of models that this worker knows and has no consumer for. */
  #unattended(): Partition[] {
    const classes = new Map<string, Partition[]>();
    for (const { model, device } of this.#slots.all) {
      const { deviceClass } = device;
      if (this.#consumers.isOpen(model, deviceClass)) continue;
      classes.set(
        `${model}/${deviceClass}`,
        LANES.map((lane) => ({ model, deviceClass, lane })),
      );
    }
    return [...classes.values()].flat();
  }

  /** Consumers for what is loaded; those of what is not are closed after a while. */
  #tendConsumers(): void {
    if (this.#stopping) return;
    const wanted = new Map<string, { model: string; deviceClass: DeviceClass; concurrency: number }>();
    for (const { model, device, served, isReady } of this.#slots.all) {
      if (!served || !isReady) continue;
      const { deviceClass } = device;
      const key = `${model}/${deviceClass}`;
      const need = wanted.get(key) ?? { model, deviceClass, concurrency: 0 };
      need.concurrency += served.wantedInFlight;
      wanted.set(key, need);
    }
    for (const need of wanted.values()) this.#consumers.open(need);
    this.#consumers.closeIdle((model, deviceClass) => wanted.has(`${model}/${deviceClass}`));
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

  #deviceFacts(): readonly DeviceFacts[] {
    const { machine } = this.#deps.machine;
    if (this.#facts?.machine !== machine) this.#facts = { machine, devices: factsOf(machine) };
    return this.#facts.devices;
  }

  /** Conditions on what changes are looked at anew right before a load. */
  async #checkRule(rule: AffinityRule, { device }: HostedDevice): Promise<void> {
    if (rule.min_free_memory_mib === undefined && rule.max_utilisation === undefined) return;
    await this.#deps.machine.look();
    const facts = this.#deviceFacts().find((one) => one.device === device);
    const fit = facts ? fitsDevice(rule, facts) : null;
    if (fit && !fit.fits) throw new PassingLoadError(fit.reason);
  }

  /** Faults of models and versions that have no slot to tell of them. */
  #faulty(): LoadedModel[] {
    return [...this.#converger.models.values()].flatMap((model) => faultsOf(model, this.#slots));
  }
}

function faultsOf({ name, config, problems }: RepositoryModel, slots: SlotTable): LoadedModel[] {
  const told = new Set(slots.of(name).map(({ version }) => version));
  const faults = new Map<string, LoadedModel>();
  for (const { kind, version, message } of problems) {
    const key = version ?? '';
    if ((config !== null && version === null) || told.has(key) || faults.has(key)) continue;
    const state = kind === 'fetching' ? 'loading' : 'failed';
    faults.set(key, { ...blankState(name, key, 'cpu'), state, reason: message });
  }
  return [...faults.values()];
}
