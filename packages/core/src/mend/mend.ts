/** What each mend is: how its damage is recognised in what lies in Redis, and how it is put right. One file for each. */
import type { RequestStatus } from '@remuda/schemas';
import type { JobQueues } from '../queue/job-queue.js';
import type { KeySubject } from '../store/key-subjects.js';
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';

/** Label of remuda_repairs_total. */
export type MendKind = 'job_removed' | 'payload_removed' | 'outcome_removed' | 'retention_set' | 'relisted';

export interface MendDeps {
  redis: Redis;
  keys: Keys;
  queues: JobQueues;
}

/** What decides about everything that belongs to a request; null: it has no record. */
export type RequestState = { status: RequestStatus; nonce: string } | null;

export interface Mend<S extends KeySubject = KeySubject> {
  kind: MendKind;
  subject: S['kind'];
  /** Whether this looks wrong. Asks Redis one thing at most, and that only where the state is suspicious. */
  isWrong(subject: S, state: RequestState, deps: MendDeps): Promise<boolean>;
  /** Whether there was something to mend. Bears to be done twice, by two processes at once even. */
  mend(subject: S, deps: MendDeps): Promise<boolean>;
}

export type SubjectOf<Kind extends KeySubject['kind']> = Extract<KeySubject, { kind: Kind }>;
