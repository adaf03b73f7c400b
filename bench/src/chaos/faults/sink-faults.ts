/** Faults of those who are to be told by webhook. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SinkMode, SinkName } from '../load/sinks.js';
import type { FaultName } from '../plan/fault-kinds.js';
import type { Strike } from './site.js';

function mode(name: SinkName, bad: SinkMode): Strike {
  return async ({ locks }, { sinks, lockMs }) => {
    sinks.set(name, bad);
    await sleep(locks * lockMs);
    sinks.set(name, 'ok');
  };
}

export const SINK_FAULTS: Partial<Record<FaultName, Strike>> = {
  sink_slow: mode('moody', 'slow'),
  sink_500: mode('moody', '500'),
  sink_410: mode('gone', '410'),
  sink_reset: mode('moody', 'reset'),
};
