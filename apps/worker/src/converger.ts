/**
 * Makes what this worker has loaded into what is wanted: looks at the repository and the desired state, plans each
 * model, and tells each slot what is wanted of it. A turn decides and does not wait for what it sets off, so no model
 * waits for another's load. Turns come when the desired state changes, when a slot has settled, and every few seconds
 * for what changes on disk.
 */
import { affinityRules } from '@remuda/core/devices/affinity-rules';
import type { DeviceFacts, Placements } from '@remuda/core/devices/fits-device';
import { placeModel } from '@remuda/core/devices/fits-device';
import { Repeat } from '@remuda/core/fleet/repeat';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { DeploymentView } from '@remuda/core/models/deployment-view';
import { effectiveConfig } from '@remuda/core/models/effective-config';
import { readyByRules } from '@remuda/core/models/served-elsewhere';
import { type PlannedVersion, planVersions, retiringRefs } from '@remuda/core/models/version-plan';
import type { Logger } from '@remuda/core/observability/logger';
import { type RepositoryModel, toModelSource } from '@remuda/core/repository/manifests';
import type { AffinityRule, HarnessConfig, WorkerHeartbeat } from '@remuda/schemas';
import type { HostedDevice } from './hosted-device.js';
import { NOTHING_WANTED, type SlotAim } from './slot-aim.js';
import type { SlotTable } from './slot-table.js';
import type { WorkerRepository } from './worker-repository.js';

export interface ConvergerOptions {
  repository: WorkerRepository;
  deployments: Pick<DeploymentView, 'deployments' | 'revision' | 'of' | 'serving'>;
  slots: SlotTable;
  devices: readonly HostedDevice[];
  /** All live workers. Does not reject. */
  fleet(): Promise<readonly WorkerHeartbeat[]>;
  /** The devices as last probed; the same object until they are probed again. */
  deviceFacts(): readonly DeviceFacts[];
  /** Models to serve; empty: all. */
  models: readonly string[];
  mostInstances: number | undefined;
  providerSwitch: Record<string, string>;
  clock: Clock;
  logger: Logger;
  /** After each turn. */
  onTurn(): void;
  everyMs?: number;
}

const EVERY_MS = 5_000;

/** A model with a configuration. */
type Planned = RepositoryModel & { config: HarnessConfig };

export class Converger implements Service {
  readonly name = 'converger';
  readonly #options: ConvergerOptions;
  readonly #repeat: Repeat;
  readonly #told = new Set<string>();
  /** Of each model that was planned: the objects that the plan was made from. */
  readonly #plannedFrom = new Map<string, readonly unknown[]>();
  #models: ReadonlyMap<string, RepositoryModel> = new Map();
  #turning: Promise<void> | undefined;
  #again = false;
  #look = false;
  #stopped = false;
  #revision = 0;
  #fleetSeen: { workers: readonly WorkerHeartbeat[]; at: number } = {
    workers: [],
    at: Number.NEGATIVE_INFINITY,
  };

  constructor(options: ConvergerOptions) {
    const { clock, everyMs = EVERY_MS } = options;
    this.#options = options;
    this.#repeat = new Repeat({
      everyMs,
      clock,
      turn: () => this.turn(),
      onError: (error) => this.#tell('', error.message),
    });
  }

  /** Newest desired state that was taken in. */
  get revision(): number {
    return this.#revision;
  }

  /** Models of the repository that this worker may serve. */
  get models(): ReadonlyMap<string, RepositoryModel> {
    return this.#models;
  }

  /** Resolves when the first turn has been taken; what it set off may still be under way. */
  async start(): Promise<void> {
    await this.#repeat.start();
    const known = [...this.#models.keys()];
    for (const name of this.#options.models.filter((wanted) => !this.#models.has(wanted))) {
      const message = 'REMUDA_WORKER_MODELS names a model that is not in the repository';
      this.#options.logger.error({ model: name, known }, message);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#repeat.stop();
    await this.#turning;
  }

  /**
   * A turn as soon as there is none under way.
   * @param look whether the files may have changed too
   */
  turnSoon({ look = true } = {}): void {
    this.turn({ look }).catch((error: Error) => this.#tell('', error.message));
  }

  /** One turn at a time; what is asked for during one is answered by another after it. */
  async turn({ look = true } = {}): Promise<void> {
    if (this.#stopped) return;
    this.#look ||= look;
    if (this.#turning) {
      this.#again = true;
      return this.#turning;
    }
    this.#turning = this.#turn().finally(() => {
      this.#turning = undefined;
    });
    await this.#turning;
    if (!this.#again) return;
    this.#again = false;
    await this.turn({ look: false });
  }

  async #turn(): Promise<void> {
    const { repository, deployments, slots, onTurn } = this.#options;
    const { revision } = deployments;
    if (this.#look) {
      this.#look = false;
      const isWanted = (name: string): boolean => this.#isWanted(name);
      this.#models = await repository.look(deployments.deployments, isWanted);
    }
    for (const name of new Set([...this.#models.keys(), ...slots.models])) this.#tend(name);
    slots.forgetEmpty();
    this.#revision = revision;
    onTurn();
  }

  #isWanted(name: string): boolean {
    const { models } = this.#options;
    return models.length === 0 || models.includes(name);
  }

  #tend(name: string): void {
    const model = this.#models.get(name);
    for (const { kind, message, file } of model?.problems ?? []) {
      if (kind !== 'fetching') this.#tell(name, message, file);
    }
    if (!model?.config) this.#tendFaulty(name, model);
    else if (this.#hasNews(model as Planned)) this.#tendPlanned(model as Planned);
  }

  /** False: it was planned from the same facts, and nothing of it is under way or hangs on the time. */
  #hasNews(model: Planned): boolean {
    const { deployments, deviceFacts, slots, clock } = this.#options;
    const { name } = model;
    const serving = deployments.serving(name);
    const facts: unknown[] = [model, deployments.deployments.get(name), serving];
    facts.push(retiringRefs(serving, clock.now()).join(), this.#loadedOf(name).join());
    if (dependsOnLoad(model.config)) facts.push(deviceFacts());
    const before = this.#plannedFrom.get(name);
    this.#plannedFrom.set(name, facts);
    const same = before !== undefined && facts.every((fact, i) => fact === before[i]);
    return !same || !slots.of(name).every((slot) => slot.isSteady);
  }

  #loadedOf(name: string): string[] {
    const slots = this.#options.slots.of(name);
    return slots.filter(({ served }) => served).map(({ version }) => version);
  }

  /** Nothing can be planned: what is loaded stays, with the reason. */
  #tendFaulty(name: string, model: RepositoryModel | undefined): void {
    const problem = model?.problems[0]?.message ?? `the folder of ${name} is gone`;
    for (const slot of this.#options.slots.of(name)) {
      slot.tend(this.#withoutFiles(name, slot.version, problem, model !== undefined));
    }
  }

  #tendPlanned(model: Planned): void {
    const { slots, devices, deployments, deviceFacts, clock } = this.#options;
    const { name } = model;
    const present = slots.of(name);
    const plan = planVersions({
      config: model.config,
      deployment: deployments.of(name),
      versions: model.versions.filter(({ complete }) => complete).map(({ version }) => version),
      serving: deployments.serving(name),
      loaded: new Set(this.#loadedOf(name)),
      now: clock.now(),
    });
    const placements = placeModel(model.config, deviceFacts());
    if (placements.problem !== null) this.#tell(name, `${name} has no place here: ${placements.problem}`);
    const tended = new Set<string>();
    for (const device of devices) {
      for (const planned of plan) {
        const aim = this.#aimOn(device, model, planned, placements);
        if (!aim) continue;
        const slot = slots.ensure(name, planned.version, device);
        tended.add(slot.key);
        slot.tend(aim);
      }
    }
    for (const slot of present.filter(({ key }) => !tended.has(key))) {
      slot.tend(this.#without(model, slot.version, plan));
    }
  }

  /** What is wanted of a version on a device; undefined: the rules of the model do not speak of the device. */
  #aimOn(
    { device }: HostedDevice,
    model: Planned,
    planned: PlannedVersion,
    { placed, refused }: Placements,
  ): SlotAim | undefined {
    const { want, reason, version } = planned;
    const registeredDigest = this.#options.deployments.of(model.name).digests[version];
    const place = placed.find((one) => one.device.device === device);
    if (place) {
      const source = this.#sourceOf(model, version, device, place.rule);
      return { want, reason, source, rule: place.rule, problem: null, registeredDigest };
    }
    const no = refused.find((one) => one.device.device === device);
    if (!no) return undefined;
    // What is loaded stays where the device is merely busy now.
    return { want, reason, source: null, rule: no.rule, problem: no.reason, registeredDigest };
  }

  #sourceOf(model: Planned, version: string, device: string, rule: AffinityRule) {
    const { deployments, mostInstances, providerSwitch } = this.#options;
    const config = effectiveConfig(model.config, deployments.of(model.name), mostInstances);
    return { ...toModelSource(model, version, device, rule), config, providerSwitch };
  }

  /** A slot that the plan does not speak of: its files are gone or not whole, or its device is not meant any more. */
  #without(model: Planned, version: string, plan: readonly PlannedVersion[]): SlotAim {
    const planned = plan.find((one) => one.version === version);
    if (planned) return this.#withoutPlace(model, version, planned);
    const problem = model.problems.find((one) => one.version === version)?.message;
    return this.#withoutFiles(
      model.name,
      version,
      problem ?? `the files of version ${version} are gone`,
      problem !== undefined,
    );
  }

  /** Its rules have left this device: it serves until the version is ready where they lead, if it ever is. */
  #withoutPlace(model: Planned, version: string, { want }: PlannedVersion): SlotAim {
    const { slots } = this.#options;
    const reason = 'the rules of the model do not allow this device';
    const serves = slots.of(model.name).some((slot) => slot.version === version && slot.served);
    if (want === 'off' || !serves || this.#isReadyWhereMeant(model, version)) {
      return { ...NOTHING_WANTED, want: 'off', reason };
    }
    return {
      ...NOTHING_WANTED,
      want: 'on_demand',
      reason,
      problem: `${reason}, and no other has version ${version} ready`,
    };
  }

  /** As the fleet was a turn ago: a turn waits for nobody. What is older says nothing. */
  #isReadyWhereMeant({ name, config }: Planned, version: string): boolean {
    const { fleet, clock, everyMs = EVERY_MS } = this.#options;
    const { workers, at } = this.#fleetSeen;
    void fleet().then((now) => {
      this.#fleetSeen = { workers: now, at: clock.now() };
    });
    return clock.now() - at < 3 * everyMs && readyByRules({ model: name, version, config, workers });
  }

  /** What serves goes on serving; what nobody asks for goes after a while. */
  #withoutFiles(name: string, version: string, problem: string, mayReturn: boolean): SlotAim {
    const { deployments } = this.#options;
    if (!deployments.of(name).registered) {
      return { ...NOTHING_WANTED, want: 'off', reason: 'the model was taken out' };
    }
    const refs = Object.values(deployments.serving(name)?.refs ?? {});
    const stays = mayReturn || refs.some((ref) => ref.version === version);
    return { ...NOTHING_WANTED, want: stays ? 'on_demand' : 'idle', reason: problem, problem };
  }

  /** Once, until the message changes. */
  #tell(model: string, message: string, file?: string): void {
    const key = `${model} ${message}`;
    if (this.#told.has(key)) return;
    if (this.#told.size > 1_000) this.#told.clear();
    this.#told.add(key);
    this.#options.logger.error({ model, file }, message);
  }
}

/** Whether its rules hang on what changes on a device. */
function dependsOnLoad(config: HarnessConfig): boolean {
  return affinityRules(config).some(
    (rule) => rule.min_free_memory_mib !== undefined || rule.max_utilisation !== undefined,
  );
}
