/**
 * Progress-based liveness: a worker that has a backlog and makes no progress is unhealthy, whatever its event loop
 * and its connections say. Where there is nothing to do, it is healthy.
 */
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Partition } from '@remuda/core/queue/partitions';

/** What is known of one partition or model at this moment. */
export interface ProgressFacts {
  subject: string;
  /** Items here without an outcome. */
  inHand: number;
  /** Jobs that wait in the queue. */
  waiting: number;
  /** Unix milliseconds of the last progress: a job taken or ended, a batch come back. */
  lastProgressAt: number;
}

/** Why the worker is unhealthy, or null. Pure. */
export function stallReason(facts: readonly ProgressFacts[], now: number, stallMs: number): string | null {
  for (const { subject, inHand, waiting, lastProgressAt } of facts) {
    const quietMs = now - lastProgressAt;
    if (quietMs < stallMs || inHand + waiting === 0) continue;
    const seconds = Math.round(quietMs / 1000);
    return inHand > 0
      ? `${subject}: ${inHand} items in hand and no batch has come back for ${seconds} s`
      : `${subject}: ${waiting} jobs wait and none has been taken for ${seconds} s`;
  }
  return null;
}

export interface LivenessOptions {
  clock: Clock;
  stallMs: number;
  everyMs: number;
  /** Reads the facts; may ask Redis. */
  facts(): Promise<ProgressFacts[]>;
  onChange(reason: string | null): void;
}

/** Looks again and again. A queue's silence counts from when its backlog was first seen, not from before. */
export class Liveness {
  readonly name = 'liveness';
  readonly #options: LivenessOptions;
  readonly #backlogSince = new Map<string, number>();
  #cancel: () => void = () => {};
  #stopped = false;
  reason: string | null = null;

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
  }

  /** One look. A question that Redis does not answer is no sign of a stall: readiness tells of Redis. */
  async look(): Promise<void> {
    const facts = await this.#options.facts().catch(() => []);
    const now = this.#options.clock.now();
    const since = facts.map((fact) => ({
      ...fact,
      lastProgressAt: Math.max(fact.lastProgressAt, this.#sinceOf(fact, now)),
    }));
    const reason = stallReason(since, now, this.#options.stallMs);
    if (reason !== this.reason) this.#options.onChange(reason);
    this.reason = reason;
  }

  #sinceOf({ subject, inHand, waiting }: ProgressFacts, now: number): number {
    if (inHand + waiting === 0) this.#backlogSince.delete(subject);
    else if (!this.#backlogSince.has(subject)) this.#backlogSince.set(subject, now);
    return this.#backlogSince.get(subject) ?? now;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(this.#options.everyMs, () => {
      void this.look().finally(() => this.#schedule());
    });
  }
}

export function partitionLabel({ model, deviceClass, lane }: Partition): string {
  return `${model} (${deviceClass}, ${lane})`;
}
