/**
 * Keeps disk and Redis of the file store in step, by one process of the fleet at a time: deletes files whose time has
 * passed, takes away what broken uploads of dead processes left, puts files that Redis has lost back into its lists, and
 * facts that have no content out of them. Does nothing where the folder is not that of the fleet: an empty mount must
 * not look like a fleet without files.
 */
import { LeasedService } from '../../fleet/leased-role.js';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import type { Keys } from '../../store/keys.js';
import type { Redis } from '../../store/redis.js';
import type { FileStore } from './bulk-files.js';
import { isExpired } from './stored-file.js';

export interface FileSweeperOptions {
  files: FileStore;
  redis: Redis;
  keys: Keys;
  onError(error: Error): void;
  clock?: Clock;
  /** Pause between two turns. */
  everyMs?: number;
}

const EVERY_MS = 30_000;
const LEASE_MS = 120_000;
const DUE_OF_A_TURN = 200;
/** Walks over all names of the folder: cheap beside what a fleet does in that time. */
const WALK_EVERY_MS = 600_000;
/** A file whose time has passed while a job reads it is looked at again then. */
const IN_USE_MS = 600_000;

export class FileSweeper extends LeasedService {
  readonly #options: FileSweeperOptions;
  readonly #clock: Clock;
  #walkedAt = Number.NEGATIVE_INFINITY;

  constructor(options: FileSweeperOptions) {
    const { redis, keys, onError, clock = systemClock, everyMs = EVERY_MS } = options;
    const key = keys.bulkFileSweeperLease();
    super({ name: 'file sweeper', redis, key, leaseMs: LEASE_MS, everyMs, clock, onError });
    this.#options = options;
    this.#clock = clock;
  }

  protected async takeTurn(): Promise<void> {
    const { files } = this.#options;
    // A fleet that has never had a file needs no folder for them.
    if (!(await files.folder.exists())) return;
    await files.checkFolder();
    await this.#deleteDue();
    const now = this.#clock.now();
    if (now - this.#walkedAt < WALK_EVERY_MS) return;
    this.#walkedAt = now;
    await files.folder.removeLeftovers(Date.now());
    await this.#relist();
    await this.#forgetGone();
  }

  async #deleteDue(): Promise<void> {
    const { files } = this.#options;
    const now = this.#clock.now();
    const due = await files.facts.due(now, DUE_OF_A_TURN);
    if (due.length === 0) return;
    const readers = await files.readers();
    for (const id of due) {
      const file = await files.facts.get(id);
      if (file && !isExpired(file, now)) await files.facts.postpone(id, file.expires_ms as number);
      else if (readers.has(id)) await files.facts.postpone(id, now + IN_USE_MS);
      else await files.drop(id, file?.tenant);
    }
  }

  /** What the disk has and Redis has not. */
  async #relist(): Promise<void> {
    const { files } = this.#options;
    for await (const ids of files.folder.ids()) {
      const known = await files.facts.getAll(ids);
      for (const [i, id] of ids.entries()) if (!known[i]) await files.recover(id);
    }
  }

  /** What Redis has and the disk has not. */
  async #forgetGone(): Promise<void> {
    const { files } = this.#options;
    let after: { id: string; at: number } | undefined;
    do {
      const page = await files.facts.page(null, { after, count: DUE_OF_A_TURN, order: 'asc' });
      for (const { id } of page) {
        if ((await files.folder.sizeOf(id)) !== undefined) continue;
        await files.facts.forget(id, (await files.facts.get(id))?.tenant);
      }
      after = page.at(-1);
    } while (after);
  }
}
