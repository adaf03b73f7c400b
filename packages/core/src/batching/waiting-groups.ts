/**
 * What waits in a batcher, kept so that the next batch is found without looking over all of it: a closing costs
 * O(batch × log waiting), however many entries and groups there are. Time is passed in.
 *
 * Invariant: an entry is in exactly one group, or gone; the candidates that it names lead `decide` to the same group
 * as all groups together would. Groups are full or due by all their rows, and in order by each lane's.
 */
import { BULK, INTERACTIVE, type LaneRank, type PerLane } from '../fairness/lane-share.js';
import { fill, type GroupState, type Waiting } from './batch-policy.js';
import { Heap } from './heap.js';
import { compareTurns, lineKey, type Ordered, type Turn, TurnOrder } from './turn-order.js';

/** An entry as the groups hold it. */
export interface HeldEntry extends Waiting, Ordered {
  /** isUrgent(), as it was when it came. */
  urgent: boolean;
}

export interface GroupLimits {
  maxRows: number;
  maxDelayMs: number;
}

/** Rows that share a key. The marks say what of it stands in the indexes. */
interface Group<Entry extends HeldEntry> {
  key: string;
  order: PerLane<TurnOrder<Entry>>;
  byArrival: Heap<Entry>;
  rows: number;
  count: number;
  /** How many of them are urgent. */
  urgent: number;
  indexed: Marks;
  indexedOldest: Entry | undefined;
  /** The first turns at the time it became full or due; undefined while it is neither. */
  ready: Marks;
  isReady: boolean;
}

/** The first turn of each lane, as an index has it. */
type Marks = [interactive: Turn | undefined, bulk: Turn | undefined];

/** A place of a group in an index of a lane; stale once the group's mark is another turn. */
interface Place<Entry extends HeldEntry> {
  group: Group<Entry>;
  turn: Turn;
}

const LANE_RANKS: readonly LaneRank[] = [INTERACTIVE, BULK];

const byArrival = (a: HeldEntry, b: HeldEntry): number => a.arrivedAt - b.arrivedAt || a.seq - b.seq;

export class WaitingGroups<Entry extends HeldEntry> {
  #limits: GroupLimits;
  readonly #groups = new Map<string, Group<Entry>>();
  readonly #byFirst = perLane((lane) => placesOf<Entry>(({ indexed }) => indexed[lane]));
  readonly #ready = perLane((lane) => placesOf<Entry>(({ ready }) => ready[lane]));
  readonly #byDue = new Heap<{ group: Group<Entry>; entry: Entry }>({
    compare: (a, b) => byArrival(a.entry, b.entry),
    isStale: ({ group, entry }) => group.indexedOldest !== entry || group.isReady,
  });
  readonly #byDeadline = new Heap<Entry>({
    compare: (a, b) => a.deadline - b.deadline,
    isStale: (entry) => entry.gone,
  });
  readonly #counts: [number, number] = [0, 0];
  #rows = 0;

  constructor(limits: GroupLimits) {
    this.#limits = limits;
  }

  /** Entries that wait. */
  get count(): number {
    return this.#counts[INTERACTIVE] + this.#counts[BULK];
  }

  get rows(): number {
    return this.#rows;
  }

  /** Whether anything of each lane waits. */
  get waits(): PerLane<boolean> {
    return [this.#counts[INTERACTIVE] > 0, this.#counts[BULK] > 0];
  }

  /** Deadline that passes next (Unix milliseconds); undefined: none has one. */
  get nextDeadline(): number | undefined {
    return this.#byDeadline.peek()?.deadline;
  }

  /** The turn that comes next on a lane. */
  first(lane: LaneRank): Turn | undefined {
    return this.#byFirst[lane].peek()?.turn;
  }

  add(entry: Entry, now: number): void {
    const group = this.#groupOf(entry.group);
    group.order[entry.laneRank].push(entry);
    group.byArrival.push(entry);
    this.#counted(group, entry, 1);
    if (entry.deadline !== 0) this.#byDeadline.push(entry);
    this.#index(group, now);
  }

  /** Groups among which `decide` finds the one that it would find among all that hold something of the lane. */
  candidates(lane: LaneRank, idle: boolean, now: number): [string, GroupState][] {
    if (idle) return stateOf(this.#byFirst[lane].peek());
    this.#moveDue(now);
    const due = this.#byDue.peek()?.group;
    return [...stateOf(this.#ready[lane].peek()), ...stateOf(due && { group: due, turn: firstOf(due) })];
  }

  /** Takes what goes into a batch of the group, of at most so many rows: first of that lane, then of the other. */
  take(key: string, lane: LaneRank, now: number, rows = this.#limits.maxRows): Entry[] {
    const group = this.#groups.get(key) as Group<Entry>;
    const lead = group.order[lane];
    const rest = group.order[lane === BULK ? INTERACTIVE : BULK];
    const { batch, passed } = fill(() => lead.pop() ?? rest.pop(), rows);
    for (const entry of passed) group.order[entry.laneRank].push(entry);
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
      group.order[entry.laneRank].forget(lineKey(entry));
      this.#index(group, now);
      expired.push(entry);
    }
    return expired;
  }

  /** Takes everything, in order. */
  takeAll(): Entry[] {
    const all: Entry[] = [];
    for (const group of this.#groups.values()) {
      for (const order of group.order) {
        for (let entry = order.pop(); entry; entry = order.pop()) {
          this.#counted(group, entry, -1);
          all.push(entry);
        }
      }
      this.#index(group, 0);
    }
    return all.sort((a, b) => a.laneRank - b.laneRank || compareTurns(a, b));
  }

  /** Looks at every group again: what is full or due is another set now. */
  setLimits(limits: GroupLimits, now: number): void {
    this.#limits = limits;
    for (const group of this.#groups.values()) {
      // Forgotten, so that both are entered anew: a place in #byDue is lost while the group is ready.
      unmarkReady(group);
      group.indexedOldest = undefined;
      this.#index(group, now);
    }
  }

  #groupOf(key: string): Group<Entry> {
    let group = this.#groups.get(key);
    if (!group) {
      group = {
        key,
        order: perLane(() => new TurnOrder<Entry>()),
        byArrival: new Heap<Entry>({ compare: byArrival, isStale: (entry) => entry.gone }),
        rows: 0,
        count: 0,
        urgent: 0,
        indexed: [undefined, undefined],
        indexedOldest: undefined,
        ready: [undefined, undefined],
        isReady: false,
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
    this.#counts[entry.laneRank] += sign;
  }

  /** Brings the indexes up to date with a group that has changed. */
  #index(group: Group<Entry>, now: number): void {
    for (const lane of LANE_RANKS) {
      const turn = group.order[lane].first;
      if (group.indexed[lane] === turn) continue;
      group.indexed[lane] = turn;
      if (turn) this.#byFirst[lane].push({ group, turn });
    }
    const oldest = group.byArrival.peek();
    if (!oldest) {
      this.#groups.delete(group.key);
      unmarkReady(group);
      group.indexedOldest = undefined;
      return;
    }
    const closing = group.urgent > 0 || group.rows >= this.#limits.maxRows;
    if (closing || oldest.arrivedAt + this.#limits.maxDelayMs <= now) this.#markReady(group);
    else if (group.isReady || group.indexedOldest !== oldest) {
      unmarkReady(group);
      group.indexedOldest = oldest;
      this.#byDue.push({ group, entry: oldest });
    }
  }

  #markReady(group: Group<Entry>): void {
    group.isReady = true;
    for (const lane of LANE_RANKS) {
      const turn = group.indexed[lane];
      if (group.ready[lane] === turn) continue;
      group.ready[lane] = turn;
      if (turn) this.#ready[lane].push({ group, turn });
    }
  }

  #moveDue(now: number): void {
    const due = now - this.#limits.maxDelayMs;
    for (let next = this.#byDue.peek(); next && next.entry.arrivedAt <= due; next = this.#byDue.peek())
      this.#markReady(next.group);
  }
}

function perLane<T>(make: (lane: LaneRank) => T): PerLane<T> {
  return [make(INTERACTIVE), make(BULK)];
}

function placesOf<Entry extends HeldEntry>(
  markOf: (group: Group<Entry>) => Turn | undefined,
): Heap<Place<Entry>> {
  return new Heap({
    compare: (a, b) => compareTurns(a.turn, b.turn),
    isStale: ({ group, turn }) => markOf(group) !== turn,
  });
}

function unmarkReady(group: Group<HeldEntry>): void {
  group.isReady = false;
  group.ready = [undefined, undefined];
}

/** Of whichever lane: for a group that waits on. */
function firstOf(group: Group<HeldEntry>): Turn {
  return (group.indexed[INTERACTIVE] ?? group.indexed[BULK]) as Turn;
}

function stateOf(place: { group: Group<HeldEntry>; turn: Turn } | undefined): [string, GroupState][] {
  if (!place) return [];
  const { group, turn } = place;
  const oldestArrival = (group.byArrival.peek() as HeldEntry).arrivedAt;
  return [[group.key, { first: turn, rows: group.rows, oldestArrival, urgent: group.urgent > 0 }]];
}
