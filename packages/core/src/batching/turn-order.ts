/**
 * What waits of one group and lane, in the order of turns. A turn belongs to the line of a tenant and a priority, not to
 * an entry: when it comes, the entry of that line goes whose deadline is nearest. So a deadline brings a row forward
 * among its tenant's own, and never before another tenant's.
 */
import { Heap } from './heap.js';

/** A turn: which goes first. */
export interface Turn {
  /** Start tag, in virtual time. */
  rank: number;
  /** Settles equal ranks: the more urgent first. */
  priority: number;
  /** Settles what is still equal: order of arrival. */
  seq: number;
}

/** What the order needs to know of an entry. */
export interface Ordered extends Turn {
  tenant: string;
  /** Unix milliseconds; 0: none. */
  deadline: number;
  /** Unix milliseconds. */
  acceptedAt: number;
  /** It waits no more. */
  gone: boolean;
}

/** An entry without a deadline goes before those whose deadline is later than so long after its acceptance. */
export const PATIENCE_MS = 60_000;

export function compareTurns(a: Turn, b: Turn): number {
  return a.rank - b.rank || a.priority - b.priority || a.seq - b.seq;
}

function compareInLine(a: Ordered, b: Ordered): number {
  return dueOf(a) - dueOf(b) || a.seq - b.seq;
}

function dueOf({ deadline, acceptedAt }: Ordered): number {
  return deadline || acceptedAt + PATIENCE_MS;
}

interface Line<Entry extends Ordered> {
  key: string;
  entries: Heap<Entry>;
}

interface TurnOfLine<Entry extends Ordered> extends Turn {
  line: Line<Entry>;
}

export class TurnOrder<Entry extends Ordered> {
  readonly #lines = new Map<string, Line<Entry>>();
  /** At least as many of a line as it has entries. */
  readonly #turns = new Heap<TurnOfLine<Entry>>({
    compare: compareTurns,
    isStale: ({ line }) => line.entries.peek() === undefined,
  });

  push(entry: Entry): void {
    const line = this.#lineOf(entry);
    line.entries.push(entry);
    const { rank, priority, seq } = entry;
    this.#turns.push({ rank, priority, seq, line });
  }

  /** The turn that comes next; the same object until it is taken. */
  get first(): Turn | undefined {
    return this.#turns.peek();
  }

  /** Takes the entry whose turn it is; pushed again, it has that turn again. */
  pop(): Entry | undefined {
    const turn = this.#turns.pop();
    if (!turn) return undefined;
    const entry = turn.line.entries.pop() as Entry;
    entry.rank = turn.rank;
    this.forget(turn.line.key);
    return entry;
  }

  /** Something of the line has gone. Its turns stay for the others of the line. */
  forget(key: string): void {
    if (this.#lines.get(key)?.entries.peek() === undefined) this.#lines.delete(key);
  }

  #lineOf(entry: Entry): Line<Entry> {
    const key = lineKey(entry);
    let line = this.#lines.get(key);
    if (!line) {
      line = { key, entries: new Heap<Entry>({ compare: compareInLine, isStale: ({ gone }) => gone }) };
      this.#lines.set(key, line);
    }
    return line;
  }
}

export function lineKey({ tenant, priority }: Pick<Ordered, 'tenant' | 'priority'>): string {
  return `${tenant}/${priority}`;
}
