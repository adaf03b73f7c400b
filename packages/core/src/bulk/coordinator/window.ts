/**
 * How much of a job is under way at once: for each device a chunk that runs and one that is ready, and no more than Redis
 * and the coordinator have room for. What has ended and is not in the journal yet counts too.
 */
export interface WindowLimits {
  /** Most bytes of orders and answers together. */
  bytes: number;
  /** Most chunks, however many devices there are. */
  chunks: number;
}

export const WINDOW: WindowLimits = { bytes: 256 * 1024 * 1024, chunks: 512 };

/** Chunks of a device: one runs, one is ready. */
const PER_DEVICE = 2;
/** Answers that are being written while others run. */
const MOST_UNWRITTEN = 4;

export interface UnderWay {
  /** Chunks that are on the queues or run. */
  sent: number;
  /** That have ended and are not in the journal. */
  unwritten: number;
  bytes: number;
}

/** Whether another chunk may be sent. @param bytes it may come to */
export function mayStart(
  { sent, unwritten, bytes: held }: UnderWay,
  { devices, bytes }: { devices: number; bytes: number },
  limits: WindowLimits = WINDOW,
): boolean {
  if (sent + unwritten === 0) return true;
  if (unwritten >= MOST_UNWRITTEN + devices) return false;
  if (sent >= Math.min(limits.chunks, PER_DEVICE * Math.max(1, devices))) return false;
  return held + bytes <= limits.bytes;
}
