/**
 * Finds what belongs together in Redis and does not fit: one walk over all keys, and for each kind of damage a file of
 * its own beside this one. What looks wrong is looked at again half a minute later, and mended if it still does.
 *
 * Bounded: a turn looks at KEYS_A_TURN keys, asks at most two small things of each, and mends MENDS_A_TURN. A million keys
 * are walked in about an hour. The sweeper (requests/sweep-requests.ts) takes the turns; it finds by its own walk over
 * the open requests, much sooner, what keeps a request from ending.
 */
import type { RequestStatus } from '@remuda/schemas';
import type { Clock } from '../lifecycle/clock.js';
import { type KeySubject, subjectOf } from '../store/key-subjects.js';
import { endlessRecord } from './endless-record.js';
import { KeyWalk } from './key-walk.js';
import type { Mend, MendDeps, MendKind, RequestState } from './mend.js';
import { orphanJob } from './orphan-job.js';
import { orphanOutcome } from './orphan-outcome.js';
import { orphanPayload } from './orphan-payload.js';
import { Suspects } from './suspects.js';
import { unlistedRequest } from './unlisted-request.js';

const KEYS_A_TURN = 1_000;
const MENDS_A_TURN = 500;
const MOST_SUSPECTS = 10_000;
/** Asked of Redis at once. */
const SLICE = 100;

const MENDS: readonly Mend[] = [orphanJob, orphanPayload, orphanOutcome, endlessRecord, unlistedRequest];

export interface ReconcilerOptions extends MendDeps {
  clock: Clock;
  /** How long something must have looked wrong: longer than anything is under way. Default 30 s. */
  suspectMs?: number;
  onMended(kind: MendKind): void;
}

const SUSPECT_MS = 30_000;

export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #walk: KeyWalk;
  readonly #suspects: Suspects<KeySubject>;

  constructor(options: ReconcilerOptions) {
    const { redis, keys, clock, suspectMs = SUSPECT_MS } = options;
    this.#options = options;
    this.#walk = new KeyWalk(redis, keys.space.prefix);
    this.#suspects = new Suspects({ clock, afterMs: suspectMs, most: MOST_SUSPECTS });
  }

  async turn(): Promise<void> {
    const { keys } = this.#options;
    const ripe = this.#suspects.takeRipe(MENDS_A_TURN);
    await this.#eachWrong(ripe, (mend, subject) => this.#mend(mend, subject));
    const found = await this.#walk.next(KEYS_A_TURN);
    const subjects = found.flatMap((key) => subjectOf(key, keys.space.prefix) ?? []);
    await this.#eachWrong(subjects, async (_, subject) => this.#suspects.add([subject]));
  }

  async #mend(mend: Mend, subject: KeySubject): Promise<void> {
    if (await mend.mend(subject, this.#options)) this.#options.onMended(mend.kind);
  }

  /** Calls `then` for each that a mend says is wrong; in slices, so that Redis and this process have a breath between. */
  async #eachWrong(
    subjects: readonly KeySubject[],
    then: (mend: Mend, subject: KeySubject) => Promise<void>,
  ): Promise<void> {
    for (let from = 0; from < subjects.length; from += SLICE) {
      const slice = subjects.slice(from, from + SLICE);
      const states = await this.#statesOf(slice);
      const look = async (subject: KeySubject): Promise<void> => {
        const state = states.get(subject.requestId) ?? null;
        for (const mend of MENDS) {
          if (mend.subject === subject.kind && (await mend.isWrong(subject, state, this.#options)))
            await then(mend, subject);
        }
      };
      await Promise.all(slice.map(look));
    }
  }

  async #statesOf(subjects: readonly KeySubject[]): Promise<Map<string, RequestState>> {
    const { redis, keys } = this.#options;
    const ids = [...new Set(subjects.map(({ requestId }) => requestId))];
    const fields = await Promise.all(ids.map((id) => redis.hmget(keys.record(id), 's', 'nonce')));
    return new Map(ids.map((id, i) => [id, stateOf(fields[i] ?? [])]));
  }
}

function stateOf([status, nonce]: (string | null)[]): RequestState {
  return status ? { status: status as RequestStatus, nonce: nonce ?? '' } : null;
}
