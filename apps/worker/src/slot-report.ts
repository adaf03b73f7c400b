/** What a worker says of a version on a device in its heartbeat, and who hears when it changes. */
import type { LoadedModel } from '@remuda/schemas';

export class SlotReport {
  #state: LoadedModel;
  readonly #onChange: () => void;

  /** @param onChange the state, or the reason for it, is another */
  constructor(blank: LoadedModel, onChange: () => void) {
    this.#state = blank;
    this.#onChange = onChange;
  }

  get now(): Readonly<LoadedModel> {
    return this.#state;
  }

  set(change: Partial<LoadedModel>): void {
    const before = this.#state;
    this.#state = { ...before, ...change };
    if (this.#state.state !== before.state || this.#state.reason !== before.reason) this.#onChange();
  }
}

/** Of a version that nothing has happened to. */
export function blankState(model: string, version: string, device: string): LoadedModel {
  return {
    model,
    version,
    digest: '',
    device,
    provider: '',
    state: 'unloaded',
    reason: null,
    load_mode: 'eager',
    instances: 1,
    memory_bytes: null,
    last_used_at: null,
    backlog_rows: 0,
    seconds_per_row: null,
    run_seconds: null,
    breaker: 'closed',
  };
}
