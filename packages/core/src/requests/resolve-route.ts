/**
 * Step one of a submission: gathers what is known of the fleet and the queues at this moment and has devices/route.ts
 * decide. Asks Redis nothing: facts are as old as the route says.
 */
import type { DeviceClass, Lane, Route } from '@remuda/schemas';
import { routeRequest } from '../devices/route.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { Clock } from '../lifecycle/clock.js';
import type { QueueDepths } from '../queue/queue-depths.js';
import type { RowMeans } from './row-means.js';

export interface RouteDeps {
  fleet: Pick<FleetView, 'classFacts' | 'ageMs'>;
  depths: Pick<QueueDepths, 'peek'>;
  rowMeans: RowMeans;
  clock: Clock;
}

export interface RouteQuestion {
  model: string;
  version: string;
  requested: string | undefined;
  /** Classes that the model allows, best first. */
  affinity: readonly string[];
  lane: Lane;
  rows: number;
}

/** @throws RemudaError device_not_allowed */
export function resolveRoute(question: RouteQuestion, { fleet, depths, rowMeans, clock }: RouteDeps): Route {
  const { model, version, requested, affinity, lane, rows } = question;
  const meanRows = rowMeans.of(model) ?? rows;
  const now = clock.now();
  let oldest = now;
  const waiting = (deviceClass: DeviceClass, of: Lane): number => {
    const depth = depths.peek({ model, deviceClass, lane: of });
    if (depth.askedAt > 0) oldest = Math.min(oldest, depth.askedAt);
    return depth.waiting;
  };
  const route = routeRequest({
    requested,
    affinity,
    lane,
    rows,
    classes: fleet.classFacts(model, version),
    // Interactive rows go before bulk ones wherever they meet.
    queuedRows: (deviceClass) => {
      const jobs = waiting(deviceClass, 'interactive') + (lane === 'bulk' ? waiting(deviceClass, 'bulk') : 0);
      return Math.round(jobs * meanRows);
    },
    ageMs: fleet.ageMs,
  });
  if (route.facts_age_ms !== undefined) route.facts_age_ms = Math.max(route.facts_age_ms, now - oldest);
  return route;
}
