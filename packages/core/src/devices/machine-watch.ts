/**
 * The machine as last probed, for heartbeats and for the rules of models that are about to load: probed wholly at the
 * start, and what changes (free memory, utilisation) every few seconds. A recorded machine stays as it was recorded.
 */
import { Repeat } from '../fleet/repeat.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import { chooseDevices } from './choose-devices.js';
import { type Machine, readRecordedMachine } from './machine.js';
import { type ProbeSources, probeMachine, reprobe, systemSources } from './probe.js';

const REPROBE_EVERY_MS = 10_000;

export interface MachineWatchOptions {
  clock: Clock;
  onError(error: Error): void;
  /** JSON file of a machine to pretend to be; null: this one. */
  recorded: string | null;
  /** Names of the devices to serve on. Default: all that are found. */
  devices?: readonly string[];
  sources?: ProbeSources;
  everyMs?: number;
}

export class MachineWatch implements Service {
  readonly name = 'machine';
  readonly #repeat: Repeat;
  readonly #options: MachineWatchOptions;
  #machine: Machine;

  private constructor(machine: Machine, options: MachineWatchOptions) {
    const { clock, onError, everyMs = REPROBE_EVERY_MS } = options;
    this.#machine = machine;
    this.#options = options;
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: async () => void (await this.look()) });
  }

  /** Probes, or reads the record. @throws Error where that cannot be read, or a device is not there */
  static async open(options: MachineWatchOptions): Promise<MachineWatch> {
    const { recorded, clock, sources, devices = [] } = options;
    const machine =
      recorded === null ? await probeMachine(sources) : await readRecordedMachine(recorded, clock.now());
    return new MachineWatch(chooseDevices(machine, devices), options);
  }

  get machine(): Machine {
    return this.#machine;
  }

  /** Reads anew what changes: also called before a load that a rule hangs on. */
  async look(): Promise<Machine> {
    const { recorded, sources = systemSources } = this.#options;
    if (recorded === null) this.#machine = await reprobe(this.#machine, sources);
    return this.#machine;
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  stop(): Promise<void> {
    return this.#repeat.stop();
  }
}
