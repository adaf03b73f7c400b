/**
 * Depth of each queue, age of its head, and what was given up, asked of Redis just before the metrics are read: whoever scales workers
 * looks at these.
 */
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { JobQueues } from '@remuda/core/queue/job-queue';
import type { RequestUseCases } from '@remuda/core/requests/submission';
import type { LetterStore } from '@remuda/core/store/letter-store';

export function keepQueueGauges(
  metrics: Metrics,
  useCases: Pick<RequestUseCases, 'models'>,
  queues: Pick<JobQueues, 'of'>,
  letters: Pick<LetterStore, 'totals'>,
  clock: Clock,
): void {
  metrics.refreshBefore(async () => {
    const models = await useCases.models();
    const { letters: count, bytes } = await letters.totals();
    metrics.deadLetters.set({}, count);
    metrics.deadLetterBytes.set({}, bytes);
    metrics.queueDepth.reset();
    metrics.queueOldestAge.reset();
    const partitions = models.flatMap(({ name, queues: known }) =>
      known.map((queue) => ({ model: name, ...queue })),
    );
    await Promise.all(
      partitions.map(async ({ model, device_class, lane, waiting, active }) => {
        metrics.queueDepth.set({ model, device_class, lane, state: 'waiting' }, waiting);
        metrics.queueDepth.set({ model, device_class, lane, state: 'active' }, active);
        const oldestAt =
          waiting > 0 ? await queues.of({ model, deviceClass: device_class, lane }).oldestAt() : null;
        const age = oldestAt === null ? 0 : Math.max(0, clock.now() - oldestAt) / 1000;
        metrics.queueOldestAge.set({ model, device_class, lane }, age);
      }),
    );
  });
}
