/**
 * What waits in a batcher, kept so that the next batch is found without looking over all of it: a closing costs
 * O(batch × log waiting), however many entries and groups there are. Time is passed in.
 *
 * Invariant: an entry is in exactly one group, or gone; the candidates that it names lead `decide` to the same group
 * as all groups together would.
 */
import { compareWaiting, fill, type GroupState, type Waiting } from './batch-policy.js';
import { Heap } from './heap.js';

/** An entry as the groups hold it. */
export interface HeldEntry extends Waiting {
  /** Order of arrival: settles what compareWaiting leaves equal. */
  seq: number;
  /** isUrgent(), as it was when it came. */
  urgent: boolean;
  /** Taken, or dropped: it waits no more. */
  gone: boolean;
}

export interface GroupLimits {
  maxRows: number;
  maxDelayMs: number;
}

/** Rows that share a key. The three marks say what of it stands in the indexes. */
interface Group<Entry extends HeldEntry> {
  key: string;
  byOrder: Heap<Entry>;
  byArrival: Heap<Entry>;
  rows: number;
  count: number;
  /** How many of them are urgent. */
  urgent: number;
  indexedHead: Entry | undefined;
  indexedOldest: Entry | undefined;
  /** Its head at the time it became full or due; undefined while it is neither. */
  readyHead: Entry | undefined;
}

/** A place of a group in an index; stale once the group's mark is another entry. */
interface Place<Entry extends HeldEntry> {
  group: Group<Entry>;
  entry: Entry;
}

const byOrder = (a: HeldEntry, b: HeldEntry): number => compareWaiting(a, b) || a.seq - b.seq;
const byArrival = (a: HeldEntry, b: HeldEntry): number => a.arrivedAt - b.arrivedAt || a.seq - b.seq;

export class WaitingGroups<Entry extends HeldEntry> {
  #limits: GroupLimits;
  readonly #groups = new Map<string, Group<Entry>>();
  readonly #byHead = new Heap<Place<Entry>>({
    compare: (a, b) => byOrder(a.entry, b.entry),
    isStale: ({ group, entry }) => group.indexedHead !== entry,
  });
  readonly #ready = new Heap<Place<Entry>>({
    compare: (a, b) => byOrder(a.entry, b.entry),
    isStale: ({ group, entry }) => group.readyHead !== entry,
  });
  readonly #byDue = new Heap<Place<Entry>>({
    compare: (a, b) => byArrival(a.entry, b.entry),
    isStale: ({ group, entry }) => group.indexedOldest !== entry || group.readyHead !== undefined,
  });
  readonly #byDeadline = new Heap<Entry>({
    compare: (a, b) => a.deadline - b.deadline,
    isStale: (entry) => entry.gone,
  });
  #count = 0;
  #rows = 0;

  constructor(limits: GroupLimits) {
    this.#limits = limits;
  }

  /** Entries that wait. */
  get count(): number {
    return this.#count;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Deadline that passes next (Unix milliseconds); undefined: none has one. */
  get nextDeadline(): number | undefined {
    return this.#byDeadline.peek()?.deadline;
  }

  add(entry: Entry, now: number): void {
    const group = this.#groupOf(entry.group);
    group.byOrder.push(entry);
    group.byArrival.push(entry);
    this.#counted(group, entry, 1);
    if (entry.deadline !== 0) this.#byDeadline.push(entry);
    this.#index(group, now);
  }

  /** Groups among which `decide` finds the one that it would find among all. */
  candidates(idle: boolean, now: number): [string, GroupState][] {
    if (idle) return [this.#byHead.peek()].flatMap((place) => this.#stateOf(place));
    this.#moveDue(now);
    return [this.#ready.peek(), this.#byDue.peek()].flatMap((place) => this.#stateOf(place));
  }

  /** Takes what goes into a batch of the group, of at most so many rows. */
  take(key: string, now: number, rows = this.#limits.maxRows): Entry[] {
    const group = this.#groups.get(key) as Group<Entry>;
    const { batch, passed } = fill(() => group.byOrder.pop(), rows);
    for (const entry of passed) group.byOrder.push(entry);
    for (const entry of batch) this.#counted(group, entry, -1);
    this.#index(group, now);
    return batch;
  }

  /** Takes what should have begun to run by now. */
  takeExpired(now: number): Entry[] {
    const expired: Entry[] = [];
    for (
      let entry = this.#byDeadline.peek();
      entry && entry.deadline <= now;
      entry = this.#byDeadline.peek()
    ) {
      const group = this.#groups.get(entry.group) as Group<Entry>;
      this.#counted(group, entry, -1);
      this.#index(group, now);
      expired.push(entry);
    }
    return expired;
  }

  /** Takes everything, in order. */
  takeAll(): Entry[] {
    const all: Entry[] = [];
    for (const group of this.#groups.values()) {
      for (let entry = group.byOrder.pop(); entry; entry = group.byOrder.pop()) {
        this.#counted(group, entry, -1);
        all.push(entry);
      }
      this.#index(group, 0);
    }
    return all.sort(byOrder);
  }

  /** Looks at every group again: what is full or due is another set now. */
  setLimits(limits: GroupLimits, now: number): void {
    this.#limits = limits;
    for (const group of this.#groups.values()) {
      // Forgotten, so that both are entered anew: a place in #byDue is lost while the group is ready.
      group.readyHead = undefined;
      group.indexedOldest = undefined;
      this.#index(group, now);
    }
  }

  #groupOf(key: string): Group<Entry> {
    let group = this.#groups.get(key);
    if (!group) {
      group = {
        key,
        byOrder: new Heap<Entry>({ compare: byOrder, isStale: (entry) => entry.gone }),
        byArrival: new Heap<Entry>({ compare: byArrival, isStale: (entry) => entry.gone }),
        rows: 0,
        count: 0,
        urgent: 0,
        indexedHead: undefined,
        indexedOldest: undefined,
        readyHead: undefined,
      };
      this.#groups.set(key, group);
    }
    return group;
  }

  #counted(group: Group<Entry>, entry: Entry, sign: 1 | -1): void {
    entry.gone = sign < 0;
    group.rows += sign * entry.rows;
    group.count += sign;
    if (entry.urgent) group.urgent += sign;
    this.#rows += sign * entry.rows;
    this.#count += sign;
  }

  /** Brings the indexes up to date with a group that has changed. */
  #index(group: Group<Entry>, now: number): void {
    const head = group.byOrder.peek();
    const oldest = group.byArrival.peek();
    if (!head || !oldest) {
      this.#groups.delete(group.key);
      group.indexedHead = group.indexedOldest = group.readyHead = undefined;
      return;
    }
    if (group.indexedHead !== head) {
      group.indexedHead = head;
      this.#byHead.push({ group, entry: head });
    }
    const closing = group.urgent > 0 || group.rows >= this.#limits.maxRows;
    if (closing || oldest.arrivedAt + this.#limits.maxDelayMs <= now) this.#markReady(group, head);
    else if (group.readyHead !== undefined || group.indexedOldest !== oldest) {
      group.readyHead = undefined;
      group.indexedOldest = oldest;
      this.#byDue.push({ group, entry: oldest });
    }
  }

  #markReady(group: Group<Entry>, head: Entry): void {
    if (group.readyHead === head) return;
    group.readyHead = head;
    this.#ready.push({ group, entry: head });
  }

  #moveDue(now: number): void {
    const due = now - this.#limits.maxDelayMs;
    for (let next = this.#byDue.peek(); next && next.entry.arrivedAt <= due; next = this.#byDue.peek())
      this.#markReady(next.group, next.group.indexedHead as Entry);
  }

  #stateOf(place: Place<Entry> | undefined): [string, GroupState][] {
    if (!place) return [];
    const { group } = place;
    const head = group.indexedHead as Entry;
    const oldestArrival = (group.byArrival.peek() as Entry).arrivedAt;
    return [[group.key, { head, rows: group.rows, oldestArrival, urgent: group.urgent > 0 }]];
  }
}
