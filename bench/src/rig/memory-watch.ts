/** Resident memory of the processes of a rig over a stretch of time, by what they do, and what Redis holds. */

import { rssBytes } from './proc-stat.js';
import type { Rig, RigPids } from './rig.js';

export type Role = keyof RigPids;

export interface MemoryPeaks {
  /** Of each kind of process at its highest, in MB; several of a kind added up. */
  byRole: Partial<Record<Role, number>>;
  /** Of all processes together at the worst moment, in MB. */
  total: number;
  /** What Redis says that its data takes, in MB, at the worst moment. */
  redisData: number;
}

const LOOK_EVERY_MS = 100;
const MB = 1024 * 1024;

/** @returns ends the watch */
export function watchMemory(rig: Rig, roles: readonly Role[]): () => Promise<MemoryPeaks> {
  const peaks: MemoryPeaks = { byRole: {}, total: 0, redisData: 0 };
  let looking: Promise<void> = look(rig, roles, peaks);
  const timer = setInterval(() => {
    looking = looking.then(() => look(rig, roles, peaks));
  }, LOOK_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await looking;
    return peaks;
  };
}

async function look(rig: Rig, roles: readonly Role[], peaks: MemoryPeaks): Promise<void> {
  const { pids } = rig;
  let total = 0;
  for (const role of roles) {
    const mb = pids[role].reduce((sum, pid) => sum + rssBytes(pid), 0) / MB;
    peaks.byRole[role] = Math.max(peaks.byRole[role] ?? 0, mb);
    total += mb;
  }
  peaks.total = Math.max(peaks.total, total);
  const used = Number(/used_memory:(\d+)/.exec(await rig.redis.info('memory'))?.[1] ?? 0);
  peaks.redisData = Math.max(peaks.redisData, used / MB);
}
