/** Depth of each queue, asked of Redis just before the metrics are read: whoever scales workers looks at these. */
import type { Metrics } from '@remuda/core/observability/metrics';
import type { RequestUseCases } from '@remuda/core/requests/submission';

export function keepQueueGauges(metrics: Metrics, useCases: Pick<RequestUseCases, 'models'>): void {
  metrics.refreshBefore(async () => {
    const models = await useCases.models();
    metrics.queueDepth.reset();
    for (const { name, queues } of models) {
      for (const { device_class, lane, waiting, active } of queues) {
        metrics.queueDepth.set({ model: name, device_class, lane, state: 'waiting' }, waiting);
        metrics.queueDepth.set({ model: name, device_class, lane, state: 'active' }, active);
      }
    }
  });
}
