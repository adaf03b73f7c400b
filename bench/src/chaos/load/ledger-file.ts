/**
 * The ledger: a file to which each accepted id is written before the next call is made, with what it must come to. The
 * verdict reads it back; nothing else that the suite remembers counts.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import type { Expected } from './load-plan.js';

export interface LedgerEntry {
  id: string;
  model: string;
  expected: Expected[];
  /** Sent as `items`. */
  items: boolean;
  deadline: boolean;
  cancel: boolean;
  /** Name of the sink that is to hear of it. */
  webhook?: string;
}

export class LedgerFile {
  readonly #path: string;
  readonly #ids = new Set<string>();

  constructor(path: string) {
    this.#path = path;
    appendFileSync(path, '');
  }

  get size(): number {
    return this.#ids.size;
  }

  accept(entry: LedgerEntry): void {
    this.#ids.add(entry.id);
    appendFileSync(this.#path, `${JSON.stringify(entry)}\n`);
  }

  /** One entry for each id: an id that was accepted twice is one request. */
  read(): LedgerEntry[] {
    const lines = readFileSync(this.#path, 'utf8').split('\n').filter(Boolean);
    return [
      ...new Map(
        lines.map((line) => JSON.parse(line) as LedgerEntry).map((entry) => [entry.id, entry]),
      ).values(),
    ];
  }
}
