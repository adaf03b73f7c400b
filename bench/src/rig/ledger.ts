/**
 * The ledger: every id that was accepted must have exactly one terminal record, and it must not change any more. A
 * write of a worker that was thrown away behind the fence counts as a doubling too: nothing here gives cause for one.
 */

import type { StoredRecord } from '@remuda/core/store/stored-record';
import { isTerminal } from '@remuda/schemas';
import { metricOf } from './metrics-text.js';
import type { Rig } from './rig.js';

export interface LedgerCount {
  accepted: number;
  terminal: number;
  lost: number;
  doubled: number;
}

/** Records read at once. */
const PAGE = 500;

export class Ledger {
  /** Fenced writes of each worker that are counted already. */
  readonly #fencedOf = new Map<string, number>();
  readonly counts: LedgerCount = { accepted: 0, terminal: 0, lost: 0, doubled: 0 };

  /** Checks accepted ids once their requests should have ended. Returns their records, in order. */
  async check(rig: Rig, ids: readonly string[]): Promise<StoredRecord[]> {
    const first = await readRecords(rig, ids);
    const second = await readRecords(rig, ids);
    this.counts.accepted += ids.length;
    this.counts.doubled += ids.length - new Set(ids).size;
    const ended = first.filter(
      (record): record is StoredRecord => record !== null && isTerminal(record.status),
    );
    this.counts.terminal += ended.length;
    this.counts.lost += ids.length - ended.length;
    this.counts.doubled += first.filter((record, i) => changedAfterItsEnd(record, second[i])).length;
    return ended;
  }

  /** Adds the writes that the live workers have thrown away since they were last asked. Ask before they stop. */
  async countFenced(rig: Rig): Promise<void> {
    for (const url of rig.workerUrls) {
      const fenced = await metricOf(url, 'remuda_fenced_writes_total');
      this.counts.doubled += fenced - (this.#fencedOf.get(url) ?? 0);
      this.#fencedOf.set(url, fenced);
    }
  }
}

function changedAfterItsEnd(before: StoredRecord | null, after: StoredRecord | null | undefined): boolean {
  if (!before || !isTerminal(before.status)) return false;
  return (
    after?.status !== before.status || after.finishedAt !== before.finishedAt || after.token !== before.token
  );
}

async function readRecords(rig: Rig, ids: readonly string[]): Promise<(StoredRecord | null)[]> {
  const records: (StoredRecord | null)[] = [];
  for (let from = 0; from < ids.length; from += PAGE) {
    records.push(...(await rig.store.read(ids.slice(from, from + PAGE))));
  }
  return records;
}
