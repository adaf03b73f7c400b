/**
 * Requests whose author was told "not accepted" without anybody knowing whether Redis took them. They are taken back
 * as soon as Redis answers, so that nothing stays half accepted. Kept in memory: when this process dies its callers
 * have had no answer at all, and that promises nothing.
 */
import { type Clock, systemClock } from '../lifecycle/clock.js';
import type { Service } from '../lifecycle/service.js';
import type { Logger } from '../observability/logger.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import type { Partition } from '../queue/partitions.js';
import type { RequestStore } from '../store/request-store.js';
import { partitionOfRecord } from './submit-request.js';

export interface Withdrawal {
  requestId: string;
  nonce: string;
  partition: Partition;
}

export interface WithdrawalOptions {
  store: RequestStore;
  queues: JobQueues;
  /** Whether it makes sense to try now. */
  ready(): boolean;
  logger: Logger;
  clock?: Clock;
}

const RETRY_MS = 250;
/** Taken back at the same time: enough to be quick, few enough not to hurt what Redis has to do otherwise. */
const AT_ONCE = 50;
/**
 * Each is done a second time after this pause: bytes of a connection that broke may still reach Redis behind the
 * first withdrawal, which came over a newer one.
 */
const AGAIN_AFTER_MS = 3_000;

export class Withdrawals implements Service {
  readonly name = 'withdrawals';
  readonly #options: WithdrawalOptions;
  readonly #clock: Clock;
  #pending: Withdrawal[] = [];
  #underWay = 0;
  #confirming = 0;
  #working = false;
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: WithdrawalOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async start(): Promise<void> {}

  /** Tries what is left once more; what remains then is told. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.#round;
    const left = this.#pending;
    this.#pending = [];
    const failed = this.#options.ready() ? await this.#takeBack(left) : left;
    for (const { requestId } of failed) {
      this.#options.logger.error({ request_id: requestId }, 'refused request could not be taken back');
    }
  }

  /** Not yet taken back for good. */
  get size(): number {
    return this.#pending.length + this.#underWay + this.#confirming;
  }

  add(withdrawal: Withdrawal): void {
    this.#pending.push(withdrawal);
    this.#schedule(0);
  }

  #schedule(ms: number): void {
    if (this.#working || this.#stopped) return;
    this.#working = true;
    this.#clock.after(ms, () => {
      this.#round = this.#work();
    });
  }

  async #work(): Promise<void> {
    const tried = this.#pending.splice(0, AT_ONCE);
    this.#underWay = tried.length;
    const failed = this.#options.ready() ? await this.#takeBack(tried) : tried;
    this.#pending.push(...failed);
    const stillFailing = new Set(failed);
    this.#confirmLater(tried.filter((withdrawal) => !stillFailing.has(withdrawal)));
    this.#underWay = 0;
    this.#working = false;
    if (this.#pending.length > 0) this.#schedule(failed.length > 0 ? RETRY_MS : 0);
  }

  #confirmLater(done: Withdrawal[]): void {
    if (done.length === 0) return;
    this.#confirming += done.length;
    this.#clock.after(AGAIN_AFTER_MS, async () => {
      const failed = this.#stopped ? [] : await this.#takeBack(done);
      this.#confirming -= done.length;
      for (const withdrawal of failed) this.add(withdrawal);
    });
  }

  /** Those that could not be taken back. */
  async #takeBack(withdrawals: readonly Withdrawal[]): Promise<Withdrawal[]> {
    const outcomes = await Promise.allSettled(withdrawals.map((withdrawal) => this.#withdraw(withdrawal)));
    return withdrawals.filter((_, i) => outcomes[i]?.status === 'rejected');
  }

  async #withdraw({ requestId, nonce, partition }: Withdrawal): Promise<void> {
    const { store, queues } = this.#options;
    // Held: somebody else was told that this request is accepted; job and record are theirs.
    if ((await store.withdraw(requestId, nonce)) === 'held') return;
    const queue = queues.of(partition);
    await queue.remove(requestId);
    // The same id may have been accepted anew in between, and its job was the one just removed.
    const [record] = await store.read([requestId]);
    // One that waits for the answer of another has no job.
    if (record?.status === 'queued' && record.follows === null)
      await queues.of(partitionOfRecord(record)).add(ticketOf(record));
  }
}
