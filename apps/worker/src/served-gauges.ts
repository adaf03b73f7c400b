/** Gauges of what a worker serves, read from the served models when they are asked for. */
import type { BreakerState } from '@remuda/core/models/breaker';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { ServedModel } from './served-model.js';

const BREAKER_GAUGE: Record<BreakerState, number> = { closed: 0, half_open: 1, open: 2 };

/** Brings the gauges of what is served up to date before they are read; what is served no more goes from them. */
export function exposeServed(metrics: Metrics, served: () => readonly ServedModel[]): void {
  const { batchLimit, backlogRows, secondsPerRow, runP95, breakerState } = metrics;
  metrics.refreshBefore(() => {
    for (const gauge of [batchLimit, backlogRows, secondsPerRow, runP95, breakerState]) gauge.reset();
    for (const one of served()) {
      const { model, version, device } = one.source;
      const labels = { model, version, device };
      const { secondsPerRow: perRow } = one.profile;
      const p95 = one.profile.p95();
      batchLimit.set(labels, one.batchLimit);
      backlogRows.set(labels, one.backlogRows);
      breakerState.set(labels, BREAKER_GAUGE[one.breaker]);
      if (perRow !== null) secondsPerRow.set(labels, perRow);
      if (p95 !== null) runP95.set(labels, p95);
    }
  });
}
