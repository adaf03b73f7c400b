/**
 * How many jobs wait in each partition, as last known: asked for at most once a second and only while somebody wants
 * to know; what this process itself adds between two answers is counted on top. Admission refuses by it, routes are
 * chosen by it.
 */
import type { Clock } from '../lifecycle/clock.js';
import type { JobQueues } from './job-queue.js';
import { type Partition, queueName } from './partitions.js';

/** How long an answer of Redis is good for. */
const FRESH_MS = 1_000;
/** One that is so old says nothing any more: nobody wanted to know for a while, and a backlog of then may be gone. */
const FORGET_MS = 10_000;

export interface Depth {
  waiting: number;
  /** Unix milliseconds; 0: never answered, or too long ago. */
  askedAt: number;
}

interface Entry extends Depth {
  /** Resolves with whether it was answered. */
  asking: Promise<boolean> | undefined;
}

export interface QueueDepthsOptions {
  queues: Pick<JobQueues, 'of'>;
  clock: Clock;
  /** Whether it makes sense to ask now. Default: always. */
  ready?(): boolean;
}

export class QueueDepths {
  readonly #options: QueueDepthsOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: QueueDepthsOptions) {
    this.#options = options;
  }

  /** As last known, at once; has it asked for anew in the background where that is old. */
  peek(partition: Partition): Depth {
    const entry = this.#entryOf(partition);
    if (this.#options.ready?.() ?? true) this.#refresh(partition, entry);
    return entry;
  }

  /** The same, but waits where it was never answered. Undefined: no answer. */
  async first(partition: Partition): Promise<Depth | undefined> {
    const entry = this.#entryOf(partition);
    const asking = this.#refresh(partition, entry);
    if (entry.askedAt === 0 && !(await asking)) return undefined;
    return entry;
  }

  /** Counts a job that this process has let in. */
  count(partition: Partition): void {
    this.#entryOf(partition).waiting++;
  }

  #entryOf(partition: Partition): Entry {
    const name = queueName(partition);
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = { waiting: 0, askedAt: 0, asking: undefined };
      this.#entries.set(name, entry);
    }
    if (this.#options.clock.now() - entry.askedAt >= FORGET_MS)
      Object.assign(entry, { waiting: 0, askedAt: 0 });
    return entry;
  }

  #refresh(partition: Partition, entry: Entry): Promise<boolean> | undefined {
    if (this.#options.clock.now() - entry.askedAt >= FRESH_MS) entry.asking ??= this.#ask(partition, entry);
    return entry.asking;
  }

  async #ask(partition: Partition, entry: Entry): Promise<boolean> {
    try {
      entry.waiting = (await this.#options.queues.of(partition).depth()).waiting;
      entry.askedAt = this.#options.clock.now();
      return true;
    } catch {
      // Whether Redis is there is for the store to find out, a moment later, and to say.
      return false;
    } finally {
      entry.asking = undefined;
    }
  }
}
