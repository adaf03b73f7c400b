/**
 * Preloaded into a process (NODE_OPTIONS, so its children have it too): its wall clock is off by CHAOS_CLOCK_OFFSET_MS,
 * as on a host whose clock is wrong. Timers and monotonic time stay as they are.
 */
const offset = Number(process.env.CHAOS_CLOCK_OFFSET_MS ?? 0);
const RealDate = Date;
const realNow = Date.now;

class OffsetDate extends RealDate {
  static override now(): number {
    return realNow() + offset;
  }

  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(realNow() + offset);
    else super(...(parts as [number]));
  }
}

if (offset !== 0) globalThis.Date = OffsetDate as DateConstructor;

export {};
