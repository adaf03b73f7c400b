/** What a runner or worker asks of the store about units of a batch, and what it hears. */

import type { ItemError, ItemMetrics, TerminalStatus } from '@remuda/schemas';
import type { BatchUnit } from '../inference/runner-protocol.js';

/** By when, by performance.now() of this process; Infinity: no such deadline. */
export interface TimeLimits {
  /** Its run must have begun. */
  startBy: number;
  /** Its request must have ended. */
  finishBy: number;
}

/** May this unit be run, and if so on which input bytes? */
export type Claim =
  /** memory: the block of a pool under the payload, which whoever took the claim gives back. limits: it has deadlines. */
  | { verdict: 'run'; payload: Uint8Array; memory?: ArrayBuffer; limits?: TimeLimits }
  | {
      verdict:
        | 'already_terminal'
        | 'fenced'
        | 'record_missing'
        | 'expired_start'
        | 'expired_finish'
        | 'payload_missing';
    };

/** The outcome of one unit as it is written: a frame of outputs, or a frame of no tensors whose extras hold the error. */
export interface UnitWrite {
  unit: BatchUnit;
  /** expired: its deadline passed before the run; counted apart, since a request of only such items is `expired`. */
  kind: 'ok' | 'error' | 'expired';
  /** Of kind error: what stands in the frame, too. Where it gives the item up, its input is kept as a dead letter. */
  error?: ItemError;
  /** encodeFrame('outputs', tensors, OutcomeExtras) */
  frame: Buffer;
}

/** The extras of an outcome frame. */
export interface OutcomeExtras {
  error?: ItemError;
  metrics?: ItemMetrics;
  model_extra?: Record<string, unknown>;
}

/**
 * written: stored now, or found stored by this same attempt. too_late: the deadline to finish has passed, so the
 * outcome was thrown away and the request has ended as expired.
 */
export interface WriteVerdict {
  verdict: 'written' | 'too_late' | 'already_terminal' | 'fenced' | 'record_missing';
  /** The status of the request where this write ended it. */
  ended: TerminalStatus | null;
}
