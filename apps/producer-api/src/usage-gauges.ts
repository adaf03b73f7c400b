/**
 * What has not ended, against its limits: asked of Redis just before the metrics are read, one command for each shard.
 * Tenants are many and their names are labels, so only those that have most are told.
 */
import type { Metrics } from '@remuda/core/observability/metrics';
import type { Admission } from '@remuda/core/requests/admission';
import type { QueueLimits } from '@remuda/core/requests/capacity-limits';
import type { RequestStore } from '@remuda/core/store/request-store';
import type { Usage } from '@remuda/core/store/usage';

const MOST_TENANTS = 100;

export function keepUsageGauges(
  metrics: Metrics,
  store: Pick<RequestStore, 'allUsage'>,
  { usage: view, memory }: Admission,
  limits: QueueLimits,
): void {
  const told = {
    requests: limits.requests,
    rows: limits.rows,
    bytes: limits.bytes,
    wait_seconds: limits.waitS,
  };
  for (const [unit, limit] of Object.entries(told))
    if (limit !== null) metrics.unendedLimit.set({ unit }, limit);
  metrics.refreshBefore(async () => {
    metrics.redisMemoryShare.set({}, memory.share());
    const all = [...(await store.allUsage())];
    metrics.unended.reset();
    metrics.drainRate.reset();
    metrics.tenantUnended.reset();
    for (const [field, usage] of all) {
      const partition = partitionLabels(field);
      if (!partition) continue;
      tell(usage, (unit, value) => metrics.unended.set({ ...partition, unit }, value));
      const rate = view.rate(field);
      if (rate) metrics.drainRate.set(partition, rate.requestsPerS);
    }
    const tenants = all.filter(([field]) => field.startsWith('t:'));
    tenants.sort(([, a], [, b]) => b.requests - a.requests);
    for (const [field, usage] of tenants.slice(0, MOST_TENANTS)) {
      tell(usage, (unit, value) => metrics.tenantUnended.set({ tenant: field.slice(2), unit }, value));
    }
  });
}

function tell({ requests, rows, bytes }: Usage, set: (unit: string, value: number) => void): void {
  set('requests', requests);
  set('rows', rows);
  set('bytes', bytes);
}

function partitionLabels(field: string): { model: string; device_class: string; lane: string } | undefined {
  const [, model, device_class, lane] = /^p:([^/]+)\/([^/]+)\/([^/]+)$/.exec(field) ?? [];
  return model && device_class && lane ? { model, device_class, lane } : undefined;
}
