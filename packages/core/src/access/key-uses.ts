/** When keys were last used: gathered in memory and written together, so that no call pays for it. */
import { Repeat } from '../fleet/repeat.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { ApiKeys } from './api-keys.js';

const WRITE_EVERY_MS = 30_000;

export interface KeyUsesOptions {
  store: Pick<ApiKeys, 'noteUses'>;
  onError(error: Error): void;
  clock?: Clock;
  everyMs?: number;
}

export class KeyUses implements Service {
  readonly name = 'key uses';
  readonly #store: Pick<ApiKeys, 'noteUses'>;
  readonly #clock: Clock;
  readonly #repeat: Repeat;
  #uses = new Map<string, number>();

  constructor({ store, onError, clock = systemClock, everyMs = WRITE_EVERY_MS }: KeyUsesOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.write() });
  }

  note(keyId: string): void {
    this.#uses.set(keyId, this.#clock.now());
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  /** Writes what is left; without Redis it is lost, which hurts nobody. */
  async stop(): Promise<void> {
    await this.#repeat.stop();
    await this.write().catch(() => {});
  }

  async write(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    await this.#store.noteUses(uses);
  }
}
