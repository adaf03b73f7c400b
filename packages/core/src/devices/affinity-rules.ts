/**
 * Where a model may run, as its configuration says: `affinity` written short or long, with `device` before all. Pure.
 * What a rule asks of a real device is held against it in fits-device.ts; the choice among classes is route.ts.
 */
import { type AffinityRule, DEVICE_CLASSES, type DeviceClass, type HarnessConfig } from '@remuda/schemas';

type Placement = Pick<HarnessConfig, 'affinity' | 'device'>;

/** Best first; at least one. */
export function affinityRules({ affinity, device }: Placement): AffinityRule[] {
  const given = (affinity ?? [device ?? 'cpu']).map((rule) => (typeof rule === 'string' ? bare(rule) : rule));
  if (device === undefined) return given;
  const preferred = given.filter((rule) => classOf(rule.device) === device);
  const others = given.filter((rule) => classOf(rule.device) !== device);
  return [...(preferred.length > 0 ? preferred : [bare(device)]), ...others];
}

/** Device classes that a model may run on, best first, each once. */
export function allowedClasses(config: Placement): DeviceClass[] {
  return [...new Set(affinityRules(config).map((rule) => classOf(rule.device)))];
}

/** cuda:0 → cuda. */
export function classOf(device: string): DeviceClass {
  const name = device.split(':')[0] as DeviceClass;
  return DEVICE_CLASSES.includes(name) ? name : 'cpu';
}

function bare(device: string): AffinityRule {
  return { device, allow_cpu_fallback: false };
}
