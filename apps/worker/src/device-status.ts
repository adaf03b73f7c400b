/** A device in a heartbeat: what the probe knows of it, and how its runner is. */
import type { Device } from '@remuda/core/devices/machine';
import type { RunnerProcess } from '@remuda/core/inference/runner-process';
import type { DeviceStatus } from '@remuda/schemas';

/** @param used what the loaded models take there, and the most they may */
export function deviceStatus(
  device: Device,
  runner: ReturnType<RunnerProcess['status']>,
  used: Pick<DeviceStatus, 'memory_budget_bytes' | 'memory_used_bytes' | 'providers'> = NOTHING_USED,
): DeviceStatus {
  return {
    ...device,
    ...used,
    runner: runner.state,
    runner_pid: runner.pid,
    runner_restarts: runner.restarts,
    runner_rss_bytes: runner.rssBytes,
  };
}

const NOTHING_USED = { memory_budget_bytes: null, memory_used_bytes: 0, providers: [] };
