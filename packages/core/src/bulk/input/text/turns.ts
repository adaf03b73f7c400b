/**
 * Long work in short turns: a runner that reads a large chunk also serves interactive requests, which would wait for as
 * long as its event loop stands still.
 */
import { setImmediate } from 'node:timers/promises';

/** Longest stretch of work without a look at what else is to be done. */
const TURN_MS = 4;

export class Turns {
  #end = performance.now() + TURN_MS;

  /** Asked every few rows. */
  get isOver(): boolean {
    return performance.now() >= this.#end;
  }

  /** Lets others go first. */
  async next(): Promise<void> {
    await setImmediate();
    this.#end = performance.now() + TURN_MS;
  }
}

/** Rows between two looks at the clock. */
export const TURN_ROWS = 16;
