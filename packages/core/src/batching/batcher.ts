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
import { FairTags } from '../fairness/fair-tags.js';
import { BULK, BULK_SHARE, INTERACTIVE, type LaneRank, LaneShare } from '../fairness/lane-share.js';
import type { Clock } from '../lifecycle/clock.js';
import { decide, isUrgent, type PolicyLimits, rowsOfBatch, type Waiting } from './batch-policy.js';
import { type HeldEntry, WaitingGroups } from './waiting-groups.js';

/** refused: handed back without a run, for another worker or a later time. */
export type Unsettled = 'expired' | 'drained' | 'refused';

export interface BatcherOptions<Entry extends Waiting, Outcome> {
  limits: PolicyLimits;
  clock: Clock;
  /** Least share of the rows that bulk gets while both lanes wait. Default: BULK_SHARE. */
  bulkShare?: number;
  /**
   * After a batch has ended, while others run: for so many milliseconds nothing is handed on ahead, unless something
   * arrives. What the queue sends in place of what has ended may come before all that is held here. Default: 0.
   */
  refillMs?(): number;
  /** Runs a batch. One outcome for each entry, in order; a rejection is the outcome of all. */
  dispatch(batch: readonly Entry[]): Promise<readonly Outcome[]>;
  /** Called soon, not at once: entries that arrive in one turn of the event loop should share a batch. */
  defer?(pump: () => void): void;
}

interface Held<Entry> extends HeldEntry {
  entry: Entry;
  settle(outcome: unknown): void;
  fail(error: unknown): void;
}

export class Batcher<Entry extends Waiting, Outcome> {
  readonly #options: BatcherOptions<Entry, Outcome>;
  readonly #groups: WaitingGroups<Held<Entry>>;
  readonly #lanes: LaneShare;
  /** By lane. */
  readonly #tags: readonly [FairTags, FairTags];
  #limits: PolicyLimits;
  #seq = 0;
  /** Until then nothing is handed on ahead, Unix milliseconds. */
  #refillUntil = 0;
  #batches = 0;
  #entriesInFlight = 0;
  #rowsInFlight = 0;
  #pumpDue = false;
  #draining = false;
  #cancelTimer: (() => void) | null = null;
  #idle: (() => void)[] = [];

  constructor(options: BatcherOptions<Entry, Outcome>) {
    this.#options = options;
    this.#limits = options.limits;
    this.#groups = new WaitingGroups(options.limits);
    this.#lanes = new LaneShare(options.bulkShare ?? BULK_SHARE);
    // One level of priority is worth a batch here: what a worker holds is a few batches.
    const newTags = () => new FairTags({ stepRows: options.limits.maxRows });
    this.#tags = [newTags(), newTags()];
  }

  get limits(): PolicyLimits {
    return this.#limits;
  }

  /** From now on; a batch that is under way is not touched. */
  set limits(limits: PolicyLimits) {
    this.#limits = limits;
    this.#groups.setLimits(limits, this.#options.clock.now());
    for (const tags of this.#tags) tags.stepRows = limits.maxRows;
    this.#pumpSoon();
  }

  /** Entries not yet in a batch. */
  get waiting(): number {
    return this.#groups.count;
  }

  /** Batches handed on and not yet answered. */
  get inFlight(): number {
    return this.#batches;
  }

  /** Entries that wait or are in a batch under way. */
  get entries(): number {
    return this.#groups.count + this.#entriesInFlight;
  }

  /** Rows of these. */
  get rows(): number {
    return this.#groups.rows + this.#rowsInFlight;
  }

  /** Resolves with the entry's own outcome; 'expired' when its deadline passed first, 'drained' at a stop. */
  add(entry: Entry): Promise<Outcome | Unsettled> {
    if (this.#draining) return Promise.resolve('drained');
    return new Promise((resolve, reject) => {
      const held: Held<Entry> = {
        rows: entry.rows,
        group: entry.group,
        laneRank: entry.laneRank,
        tenant: entry.tenant,
        weight: entry.weight,
        priority: entry.priority,
        rank: this.#tags[entry.laneRank].tag(entry, this.#groups.first(entry.laneRank)?.rank),
        deadline: entry.deadline,
        acceptedAt: entry.acceptedAt,
        arrivedAt: entry.arrivedAt,
        seq: this.#seq++,
        urgent: isUrgent(entry, this.#limits),
        gone: false,
        entry,
        settle: resolve as (outcome: unknown) => void,
        fail: reject,
      };
      this.#groups.add(held, this.#options.clock.now());
      this.#refillUntil = 0;
      this.#pumpSoon();
    });
  }

  /** Settles everything that waits as 'refused'; batches under way go on. */
  refuseWaiting(): void {
    for (const held of this.#groups.takeAll()) held.settle('refused');
  }

  /** Settles everything that waits as 'drained'; resolves when the batches under way are answered. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#cancelTimer?.();
    for (const held of this.#groups.takeAll()) held.settle('drained');
    if (this.#batches > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
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
    for (const held of this.#groups.takeExpired(now)) held.settle('expired');
    for (;;) {
      const { waits } = this.#groups;
      const lane = this.#lanes.next(waits);
      const decision = this.#decide(lane, now);
      if (!('close' in decision)) {
        this.#lookAgainAt(decision.lookAgainAt, now);
        return;
      }
      const { close, lead } = decision;
      const rows = rowsOfBatch(this.#batches, this.#limits);
      const batch = this.#groups.take(close, lead, now, rows);
      this.#lanes.closed(lead, rowsByLane(batch), waits[INTERACTIVE] && waits[BULK], rows);
      void this.#dispatch(batch);
    }
  }

  /** What to close for the lane whose turn it is; where nothing of that is full or due, for the other. */
  #decide(turn: LaneRank, now: number): { close: string; lead: LaneRank } | { lookAgainAt: number | null } {
    const idle = this.#batches < this.#limits.instances;
    if (!idle && now < this.#refillUntil) return { lookAgainAt: this.#refillUntil };
    let lookAgainAt: number | null = null;
    for (const lead of [turn, turn === BULK ? INTERACTIVE : BULK] as const) {
      const decision = decide(this.#groups.candidates(lead, idle, now), this.#batches, now, this.#limits);
      if ('close' in decision) return { ...decision, lead };
      lookAgainAt = decision.lookAgainAt ?? lookAgainAt;
    }
    return { lookAgainAt };
  }

  async #dispatch(batch: Held<Entry>[]): Promise<void> {
    this.#count(batch, 1);
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
      this.#count(batch, -1);
      if (this.#batches === 0) for (const resolve of this.#idle.splice(0)) resolve();
      this.#refillUntil = this.#options.clock.now() + (this.#options.refillMs?.() ?? 0);
      this.#pumpSoon();
    }
  }

  #count(batch: readonly Held<Entry>[], sign: 1 | -1): void {
    this.#batches += sign;
    this.#entriesInFlight += sign * batch.length;
    for (const { rows } of batch) this.#rowsInFlight += sign * rows;
  }

  /** Wakes at the time the policy named, or at the next deadline: who waits for an answer hears of it then. */
  #lookAgainAt(policyTime: number | null, now: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(policyTime ?? never, this.#groups.nextDeadline ?? never);
    if (Number.isFinite(at))
      this.#cancelTimer = this.#options.clock.after(Math.max(0, at - now), () => this.#pump());
  }
}

function rowsByLane(batch: readonly Waiting[]): [interactive: number, bulk: number] {
  const rows: [number, number] = [0, 0];
  for (const entry of batch) rows[entry.laneRank] += entry.rows;
  return rows;
}
