/** The devices of this worker as last probed, and whether the rules of a model allow one right now. */
import { type DeviceFacts, factsOf, fitsDevice } from '@remuda/core/devices/fits-device';
import type { Machine } from '@remuda/core/devices/machine';
import type { MachineWatch } from '@remuda/core/devices/machine-watch';
import type { AffinityRule } from '@remuda/schemas';
import { PassingLoadError } from './load-failure.js';

export class DeviceRules {
  readonly #watch: Pick<MachineWatch, 'machine' | 'look'>;
  #known: { machine: Machine; devices: DeviceFacts[] } | undefined;

  constructor(watch: Pick<MachineWatch, 'machine' | 'look'>) {
    this.#watch = watch;
  }

  /** The same object until they are probed again. */
  get facts(): readonly DeviceFacts[] {
    const { machine } = this.#watch;
    if (this.#known?.machine !== machine) this.#known = { machine, devices: factsOf(machine) };
    return this.#known.devices;
  }

  /** Conditions on what changes are looked at anew right before a load. @throws PassingLoadError */
  async check(rule: AffinityRule, device: string): Promise<void> {
    if (rule.min_free_memory_mib === undefined && rule.max_utilisation === undefined) return;
    await this.#watch.look();
    const facts = this.facts.find((one) => one.device === device);
    const fit = facts ? fitsDevice(rule, facts) : null;
    if (fit && !fit.fits) throw new PassingLoadError(fit.reason);
  }
}
