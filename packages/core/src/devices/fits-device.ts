/**
 * Holds the affinity rules of a model against real devices: what it may be loaded on, in the order of the rules, and
 * why not on the others. Pure. A condition on a fact that is not known is not met: better not loaded, with a reason,
 * than loaded where it does not fit.
 */
import type { AffinityRule, HarnessConfig, WorkerHeartbeat } from '@remuda/schemas';
import { affinityRules } from './affinity-rules.js';
import type { Device, Machine } from './machine.js';

/** What rules are held against. */
export interface DeviceFacts
  extends Pick<
    Device,
    | 'device'
    | 'device_class'
    | 'memory_total_bytes'
    | 'memory_free_bytes'
    | 'utilisation'
    | 'compute_capability'
  > {
  /** Usable cores of its machine. */
  cores: number;
}

/** lasting: no matter when it is asked again, on this device it stays so. */
export type Fit = { fits: true } | { fits: false; reason: string; lasting: boolean };

export interface Placement<D extends DeviceFacts = DeviceFacts> {
  device: D;
  rule: AffinityRule;
}

export interface Placements<D extends DeviceFacts = DeviceFacts> {
  /** By rule, best first; each device once. */
  placed: Placement<D>[];
  /** Devices that a rule means and that do not meet its conditions. */
  refused: (Placement<D> & { reason: string; lasting: boolean })[];
  /** Why it has no place here at all; null: it has. */
  problem: string | null;
}

export function factsOf(machine: Machine): (Device & DeviceFacts)[] {
  return machine.devices.map((device) => ({ ...device, cores: machine.usableCores }));
}

/** Whether the rule speaks of this device at all: its class, or this very one. */
export function meansDevice(
  { device }: Pick<AffinityRule, 'device'>,
  facts: Pick<DeviceFacts, 'device' | 'device_class'>,
): boolean {
  // A device without a number is the first and only one of its class.
  return device === facts.device || device === facts.device_class || device === `${facts.device}:0`;
}

/** Whether a device meets a rule. */
export function fitsDevice(rule: AffinityRule, facts: DeviceFacts): Fit {
  if (!meansDevice(rule, facts)) return no(`the rule is for ${rule.device}, this is ${facts.device}`, true);
  return (
    unmetMemory(rule, facts) ??
    unmetUtilisation(rule, facts) ??
    unmetCapability(rule, facts) ??
    unmetCores(rule, facts) ?? { fits: true }
  );
}

/** Where the model is to be loaded, among these devices. */
export function placeModel<D extends DeviceFacts>(
  config: Pick<HarnessConfig, 'affinity' | 'device'>,
  devices: readonly D[],
): Placements<D> {
  const rules = affinityRules(config);
  const placed: Placement<D>[] = [];
  const refused: Placements<D>['refused'] = [];
  for (const rule of rules) {
    for (const device of devices) {
      if (!meansDevice(rule, device) || placed.some((place) => place.device === device)) continue;
      const fit = fitsDevice(rule, device);
      if (fit.fits) placed.push({ device, rule });
      else refused.push({ device, rule, reason: fit.reason, lasting: fit.lasting });
    }
  }
  return { placed, refused, problem: placed.length > 0 ? null : noPlace(rules, refused) };
}

function noPlace(rules: readonly AffinityRule[], refused: Placements['refused']): string {
  if (refused.length > 0) return refused.map(({ reason }) => reason).join('; ');
  return `its rules ask for ${rules.map(({ device }) => device).join(' or ')}, of which there is none here`;
}

/** One sentence for each rule of a model that no device of the fleet can meet. */
export function unmetRules(
  model: string,
  config: Pick<HarnessConfig, 'affinity' | 'device'>,
  workers: readonly Pick<WorkerHeartbeat, 'cores' | 'devices' | 'models'>[],
): string[] {
  const devices = workers.flatMap((worker) =>
    worker.devices.map((device) => ({
      ...device,
      cores: worker.cores,
      // What it takes itself is no longer free.
      hasIt: worker.models.some(
        (loaded) => loaded.model === model && loaded.device === device.device && loaded.state === 'ready',
      ),
    })),
  );
  if (devices.length === 0) return [];
  return affinityRules(config).flatMap((rule) => {
    const meant = devices.filter((device) => meansDevice(rule, device));
    if (meant.length === 0) return [`no worker of the fleet has a device for its rule "${rule.device}"`];
    const reasons = new Set<string>();
    for (const device of meant) {
      const fit = fitsDevice(rule, device);
      if (fit.fits || device.hasIt) return [];
      reasons.add(fit.reason);
    }
    const shown = [...reasons].slice(0, 3).join('; ');
    return [`no device of the fleet meets its rule "${rule.device}": ${shown}`];
  });
}

function unmetMemory({ min_free_memory_mib: least }: AffinityRule, facts: DeviceFacts): Fit | null {
  if (least === undefined) return null;
  const { device, memory_free_bytes: free, memory_total_bytes: total } = facts;
  if (free === null)
    return no(`how much memory is free on ${device} is not known; the rule asks for ${least} MiB`, true);
  if (mebibytes(free) >= least) return null;
  const lasting = total !== null && mebibytes(total) < least;
  return no(
    lasting
      ? `${device} has ${mebibytes(total)} MiB of memory in all; the rule asks for ${least} MiB free`
      : `${device} has ${mebibytes(free)} MiB of memory free; the rule asks for ${least} MiB`,
    lasting,
  );
}

function unmetUtilisation({ max_utilisation: most }: AffinityRule, facts: DeviceFacts): Fit | null {
  if (most === undefined) return null;
  const { device, device_class, utilisation } = facts;
  if (device_class === 'cpu') return no('max_utilisation is a condition for GPUs; the rule is for cpu', true);
  if (utilisation === null)
    return no(`the utilisation of ${device} is not known; the rule asks for ${percent(most)} at most`, true);
  if (utilisation <= most) return null;
  return no(`${device} is ${percent(utilisation)} busy; the rule asks for ${percent(most)} at most`, false);
}

function unmetCapability({ min_compute_capability: least }: AffinityRule, facts: DeviceFacts): Fit | null {
  if (least === undefined) return null;
  const { device, device_class, compute_capability: has } = facts;
  if (device_class === 'cpu')
    return no('min_compute_capability is a condition for GPUs; the rule is for cpu', true);
  if (has === null)
    return no(`the compute capability of ${device} is not known; the rule asks for ${least}`, true);
  return has >= least
    ? null
    : no(`${device} has compute capability ${has}; the rule asks for ${least}`, true);
}

function unmetCores({ min_cores: least }: AffinityRule, { device, cores }: DeviceFacts): Fit | null {
  if (least === undefined || cores >= least) return null;
  return no(`the machine of ${device} has ${cores} usable cores; the rule asks for ${least}`, true);
}

function no(reason: string, lasting: boolean): Fit {
  return { fits: false, reason, lasting };
}

function mebibytes(bytes: number): number {
  return Math.floor(bytes / 2 ** 20);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
