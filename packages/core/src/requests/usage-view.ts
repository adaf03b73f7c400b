/**
 * What has not ended, by partition and tenant, as this process knows it. Each acceptance brings the figures of all
 * processes with its answer, so they cost no question of their own; who accepts nothing asks at most once a second, or,
 * near a limit, twenty times. What this process has let in and has no answer about stands on top, so a burst
 * within one tick is counted, too.
 */
import type { Clock } from '../lifecycle/clock.js';
import type { RequestStore } from '../store/request-store.js';
import { addUsage, NO_USAGE, parseUsage, type Usage } from '../store/usage.js';
import { DrainRate, type Rate } from './drain-rate.js';

/** How long a reading is good for where there is room. */
export const FRESH_MS = 1_000;
/** And where there is hardly any: a worker empties a short queue in less than a second. */
export const FULL_FRESH_MS = 50;
/** Nobody wanted to know for so long: what was read then says nothing any more. */
const FORGET_MS = 10_000;
/** Partitions and tenants that are remembered. */
const MOST_ENTRIES = 10_000;

/** What one request adds. */
export interface Amount {
  rows: number;
  bytes: number;
}

interface Entry {
  /** As last read, by shard. */
  shards: (Usage | undefined)[];
  known: Usage;
  /** Let in here, not answered yet. */
  pending: { requests: number; rows: number; bytes: number };
  /** 0: never answered, or too long ago. */
  askedAt: number;
  asking: Promise<boolean> | undefined;
  /** Somebody has found it too old since it was read. */
  doubted: boolean;
  drain: DrainRate;
}

export interface UsageViewOptions {
  store: Pick<RequestStore, 'readUsage' | 'keys'>;
  clock: Clock;
}

export class UsageView {
  readonly #options: UsageViewOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: UsageViewOptions) {
    this.#options = options;
  }

  /** As last known, at once; asks anew in the background where that is older than `freshMs`. undefined: not known. */
  peek(field: string, freshMs = FRESH_MS): Usage | undefined {
    const entry = this.#entryOf(field);
    if (this.#options.clock.now() - entry.askedAt >= freshMs) entry.asking ??= this.#ask(field, entry);
    return entry.askedAt === 0 ? undefined : usageOf(entry);
  }

  /** How old is what peek() tells; Infinity: nothing is known. */
  ageMs(field: string): number {
    const askedAt = this.#entries.get(field)?.askedAt ?? 0;
    return askedAt === 0 ? Number.POSITIVE_INFINITY : this.#options.clock.now() - askedAt;
  }

  /**
   * Whether it is new enough to refuse by. Of those who come after a pause the first is told no, so that he waits for
   * new figures; the others need not, since they are asked for by then. So a server that is slow itself goes on refusing.
   */
  isCurrent(field: string, mostAgeMs: number): boolean {
    const age = this.ageMs(field);
    if (age <= mostAgeMs) return true;
    const entry = this.#entryOf(field);
    if (age > FORGET_MS || !entry.doubted) {
      entry.doubted = true;
      return false;
    }
    return true;
  }

  /** Waits until it is known anew. False: Redis did not answer. */
  renew(field: string): Promise<boolean> {
    const entry = this.#entryOf(field);
    entry.asking ??= this.#ask(field, entry);
    return entry.asking;
  }

  /** How fast it leaves; undefined: not measured lately. */
  rate(field: string): Rate | undefined {
    return this.#entries.get(field)?.drain.rate(this.#options.clock.now());
  }

  /** This process lets a request in. Each call of it wants one of leave(). */
  enter(field: string, amount: Amount): void {
    count(this.#entryOf(field).pending, amount, 1);
  }

  /** It was answered: accepted, and `text` is what Redis counted with it; or not, and nothing stays of it. */
  leave(field: string, amount: Amount, shard?: number, text?: string): void {
    const entry = this.#entries.get(field);
    if (!entry) return;
    count(entry.pending, amount, -1);
    if (shard === undefined || text === undefined) return;
    entry.shards[shard] = parseUsage(text);
    this.#learn(entry);
    // On a Cluster this was one of many hashes.
    if (this.#options.store.keys.space.shards === 1) entry.askedAt = this.#options.clock.now();
  }

  #entryOf(field: string): Entry {
    let entry = this.#entries.get(field);
    if (!entry) {
      if (this.#entries.size >= MOST_ENTRIES) this.#dropIdle();
      entry = {
        shards: [],
        known: NO_USAGE,
        pending: { requests: 0, rows: 0, bytes: 0 },
        askedAt: 0,
        asking: undefined,
        doubted: false,
        drain: new DrainRate(),
      };
      this.#entries.set(field, entry);
    }
    if (this.#options.clock.now() - entry.askedAt >= FORGET_MS) entry.askedAt = 0;
    return entry;
  }

  #dropIdle(): void {
    const { clock } = this.#options;
    for (const [field, { pending, askedAt, asking }] of this.#entries) {
      if (pending.requests === 0 && !asking && clock.now() - askedAt >= FORGET_MS)
        this.#entries.delete(field);
    }
  }

  async #ask(field: string, entry: Entry): Promise<boolean> {
    const { store, clock } = this.#options;
    try {
      const shards = await store.readUsage([field]);
      entry.shards = shards.map(([text]) => parseUsage(text));
      entry.askedAt = clock.now();
      this.#learn(entry);
      return true;
    } catch {
      // Whether Redis is there is for the store to find out, a moment later, and to say.
      return false;
    } finally {
      entry.asking = undefined;
    }
  }

  #learn(entry: Entry): void {
    entry.doubted = false;
    entry.known = entry.shards.reduce<Usage>((sum, usage) => (usage ? addUsage(sum, usage) : sum), NO_USAGE);
    entry.drain.note(entry.known, this.#options.clock.now());
  }
}

function usageOf({ known, pending }: Entry): Usage {
  return {
    ...known,
    requests: known.requests + pending.requests,
    rows: known.rows + pending.rows,
    bytes: known.bytes + pending.bytes,
  };
}

function count(pending: Entry['pending'], { rows, bytes }: Amount, by: 1 | -1): void {
  pending.requests += by;
  pending.rows += by * rows;
  pending.bytes += by * bytes;
}
