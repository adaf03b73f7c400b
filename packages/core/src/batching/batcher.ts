/**
 * Gathers rows of many requests into batches and gives each entry an outcome of its own. Knows no queue and no
 * model; time is passed in. File 6 of the tour: when a batch closes is in batch-policy.ts, what may share one in
 * compatibility.ts.
 *
 * Invariant: every entry that is added settles exactly once, whatever dispatch does; an entry that dispatch leaves
 * out of its answer is failed, never assumed done.
 *
 * Next: core/inference/run-batch.ts, which dispatch calls.
 */
import type { Clock } from '../lifecycle/clock.js';
import {
  compareWaiting,
  decide,
  fill,
  type GroupState,
  type PolicyLimits,
  type Waiting,
} from './batch-policy.js';

export type Unsettled = 'expired' | 'drained';

export interface BatcherOptions<Entry extends Waiting, Outcome> {
  limits: PolicyLimits;
  clock: Clock;
  /** Runs a batch. One outcome for each entry, in order; a rejection is the outcome of all. */
  dispatch(batch: readonly Entry[]): Promise<readonly Outcome[]>;
  /** Called soon, not at once: entries that arrive in one turn of the event loop should share a batch. */
  defer?(pump: () => void): void;
}

interface Held<Entry> extends Waiting {
  entry: Entry;
  settle(outcome: unknown): void;
  fail(error: unknown): void;
}

export class Batcher<Entry extends Waiting, Outcome> {
  readonly #options: BatcherOptions<Entry, Outcome>;
  readonly #groups = new Map<string, Held<Entry>[]>();
  #inFlight = 0;
  #waiting = 0;
  #pumpDue = false;
  #draining = false;
  #cancelTimer: (() => void) | null = null;
  #idle: (() => void)[] = [];

  constructor(options: BatcherOptions<Entry, Outcome>) {
    this.#options = options;
  }

  /** Entries not yet in a batch. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Batches handed on and not yet answered. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Resolves with the entry's own outcome; 'expired' when its deadline passed first, 'drained' at a stop. */
  add(entry: Entry): Promise<Outcome | Unsettled> {
    if (this.#draining) return Promise.resolve('drained');
    return new Promise((resolve, reject) => {
      const held: Held<Entry> = {
        rows: entry.rows,
        group: entry.group,
        laneRank: entry.laneRank,
        priority: entry.priority,
        deadline: entry.deadline,
        acceptedAt: entry.acceptedAt,
        arrivedAt: entry.arrivedAt,
        entry,
        settle: resolve as (outcome: unknown) => void,
        fail: reject,
      };
      const group = this.#groups.get(entry.group);
      if (group) insertInOrder(group, held);
      else this.#groups.set(entry.group, [held]);
      this.#waiting++;
      this.#pumpSoon();
    });
  }

  /** Settles everything that waits as 'drained'; resolves when the batches under way are answered. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#cancelTimer?.();
    for (const group of this.#groups.values()) for (const held of group) held.settle('drained');
    this.#groups.clear();
    this.#waiting = 0;
    if (this.#inFlight > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #pumpSoon(): void {
    if (this.#pumpDue) return;
    this.#pumpDue = true;
    const defer = this.#options.defer ?? setImmediate;
    defer(() => {
      this.#pumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#draining) return;
    const now = this.#options.clock.now();
    this.#dropExpired(now);
    for (;;) {
      const decision = decide(this.#states(), this.#inFlight, now, this.#options.limits);
      if (!('close' in decision)) {
        this.#lookAgainAt(decision.lookAgainAt, now);
        return;
      }
      this.#close(decision.close);
    }
  }

  *#states(): Iterable<[string, GroupState]> {
    for (const [key, group] of this.#groups) {
      let rows = 0;
      let oldestArrival = Number.POSITIVE_INFINITY;
      for (const held of group) {
        rows += held.rows;
        if (held.arrivedAt < oldestArrival) oldestArrival = held.arrivedAt;
      }
      yield [key, { head: group[0] as Held<Entry>, rows, oldestArrival }];
    }
  }

  #close(key: string): void {
    const { batch, rest } = fill(this.#groups.get(key) as Held<Entry>[], this.#options.limits.maxRows);
    if (rest.length > 0) this.#groups.set(key, rest);
    else this.#groups.delete(key);
    this.#waiting -= batch.length;
    void this.#dispatch(batch);
  }

  async #dispatch(batch: Held<Entry>[]): Promise<void> {
    this.#inFlight++;
    try {
      const outcomes = await this.#options.dispatch(batch.map((held) => held.entry));
      batch.forEach((held, i) => {
        const outcome = outcomes[i];
        if (outcome === undefined) held.fail(new Error('the batch was answered without this entry'));
        else held.settle(outcome);
      });
    } catch (error) {
      for (const held of batch) held.fail(error);
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
      this.#pumpSoon();
    }
  }

  #dropExpired(now: number): void {
    for (const [key, group] of this.#groups) {
      if (!group.some((held) => held.deadline !== 0 && held.deadline <= now)) continue;
      const left = group.filter((held) => {
        if (held.deadline === 0 || held.deadline > now) return true;
        this.#waiting--;
        held.settle('expired');
        return false;
      });
      if (left.length > 0) this.#groups.set(key, left);
      else this.#groups.delete(key);
    }
  }

  /** Wakes at the time the policy named, or at the next deadline: who waits for an answer hears of it then. */
  #lookAgainAt(policyTime: number | null, now: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    let at = policyTime ?? Number.POSITIVE_INFINITY;
    for (const group of this.#groups.values()) {
      for (const held of group) if (held.deadline !== 0 && held.deadline < at) at = held.deadline;
    }
    if (Number.isFinite(at))
      this.#cancelTimer = this.#options.clock.after(Math.max(0, at - now), () => this.#pump());
  }
}

/** Most entries arrive in order, so the place is looked for from the end. */
function insertInOrder<T extends Waiting>(ordered: T[], item: T): void {
  let at = ordered.length;
  while (at > 0 && compareWaiting(item, ordered[at - 1] as T) < 0) at--;
  ordered.splice(at, 0, item);
}
