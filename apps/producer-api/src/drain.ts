/**
 * The end of a server, seen from its routes: first it is not ready any more but still answers, so that a load balancer
 * can turn away; then open waits are answered and new calls refused.
 */
import { setMaxListeners } from 'node:events';

export class Drain {
  #draining = false;
  readonly #closing = new AbortController();

  constructor() {
    // Every open wait listens.
    setMaxListeners(0, this.#closing.signal);
  }

  /** /readyz says 503. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Calls that come now are refused. */
  get closing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Fires when open waits have to be answered. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  begin(): void {
    this.#draining = true;
  }

  close(): void {
    this.#draining = true;
    this.#closing.abort();
  }
}
