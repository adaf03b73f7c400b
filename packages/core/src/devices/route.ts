/**
 * Decides to which device class a request goes, with the reasons in the order in which the facts were used. Pure: the
 * live classes come from the heartbeats. The Route is recorded on the request; queue/partitions.ts makes a queue of it.
 */
import type { Lane, Route } from '@remuda/schemas';
import { RemudaError } from '../errors.js';

export interface RouteFacts {
  /** The class that the request asks for. */
  requested?: string;
  /** Classes that the model allows, best first; at least one. */
  affinity: readonly string[];
  /** Classes on which a live worker has the model. */
  liveClasses: ReadonlySet<string>;
  lane: Lane;
}

/** @throws RemudaError device_not_allowed */
export function routeRequest({ requested, affinity, liveClasses, lane }: RouteFacts): Route {
  const { device_class, reasons } =
    requested === undefined
      ? routeByAffinity(affinity, liveClasses)
      : routeAsAsked(requested, affinity, liveClasses);
  return { device_class, lane, reasons };
}

type Decision = Pick<Route, 'device_class' | 'reasons'>;

function routeAsAsked(
  requested: string,
  affinity: readonly string[],
  liveClasses: ReadonlySet<string>,
): Decision {
  if (!affinity.includes(requested)) {
    throw new RemudaError(
      'device_not_allowed',
      `the model does not run on ${requested}; its rules allow ${affinity.join(', ')}`,
      { requested, allowed: [...affinity] },
    );
  }
  const reasons = [`the request asks for ${requested}, which the model allows`];
  if (!liveClasses.has(requested)) {
    reasons.push(`no live worker has the model on ${requested}: the request waits for one`);
  }
  return { device_class: requested, reasons };
}

function routeByAffinity(affinity: readonly string[], liveClasses: ReadonlySet<string>): Decision {
  const first = affinity[0] as string;
  const reasons = [
    affinity.length === 1
      ? `the model allows ${first} only`
      : `the model prefers ${affinity.join(', then ')}`,
  ];
  const live = affinity.find((deviceClass) => liveClasses.has(deviceClass));
  if (live === undefined) {
    reasons.push(`no live worker has the model: the request waits for one on ${first}, the first choice`);
    return { device_class: first, reasons };
  }
  const passedOver = affinity.slice(0, affinity.indexOf(live));
  if (passedOver.length > 0) reasons.push(`no live worker has it on ${passedOver.join(' or ')}`);
  reasons.push(`a live worker has it on ${live}`);
  return { device_class: live, reasons };
}
