/**
 * The truth about every request: its record, its inputs until they are run, its outcomes until they expire. Each
 * change is one script, so that it happens wholly or not at all; writes of outcomes stand behind a fence: a request
 * that has ended never changes, and an attempt that was overtaken writes nothing.
 *
 * Field by field what lies in Redis: scripts/accept-request-N.lua and stored-record.ts. Next: queue/job-queue.ts.
 */
import type { ItemError, Route, TerminalStatus } from '@remuda/schemas';
import { isChunkId } from '../bulk/chunk-door.js';
import { finishDeadlineError, startDeadlineError } from '../deadlines/deadline-errors.js';
import type { BatchUnit } from '../inference/runner-protocol.js';
import { isShadowId } from '../models/shadow-id.js';
import { isDeadLetter } from '../retries/error-classes.js';
import { claimAndFetch, ordinarySource, type PayloadSource } from './claim-units.js';
import type { Keys } from './keys.js';
import { newestFirst, type Place, placesOf } from './newest-first.js';
import type { Claim, UnitWrite, WriteVerdict } from './outcome.js';
import { callScript, type Redis } from './redis.js';
import { RECORD_FIELDS, type RequestDocument, readStoredRecord, type StoredRecord } from './stored-record.js';
import { sumUsage, type Usage, useOf } from './usage.js';

/** Up to here the input of a single item lies in the record itself: one key and two commands less. */
export const INLINE_PAYLOAD_BYTES = 8 * 1024;
/** From here on an outcome lies under a key of its own, so that no script has to copy it. */
const LARGE_OUTCOME_BYTES = 16 * 1024;
/** A payload whose record was never written goes by itself after this time. */
const UNOWNED_PAYLOAD_S = 600;
/** Stands in place of an attempt's token in the key of an outcome that was copied: attempts count from 1. */
const COPY_TOKEN = 0;
/** Open requests that one script counts anew. */
const MOST_RECOUNTED = 5_000;
const START_ERROR = JSON.stringify(startDeadlineError());
const FINISH_ERROR = JSON.stringify(finishDeadlineError());
/** Outcomes of a request that is not complete yet are kept at least this long. */
const UNFINISHED_OUTCOME_S = 7 * 24 * 3600;

export interface Acceptance {
  requestId: string;
  nonce: string;
  /** Equal for equal content: tells a repeated request from a different one with the same id. */
  fingerprint: string;
  acceptedAt: number;
  /** By which it must begin to run, Unix milliseconds; 0: none. */
  deadline: number;
  /** By which it must have ended, Unix milliseconds; 0: none. */
  finishDeadline: number;
  /** Something is to be done when it has ended: see requests/aftermath.ts. */
  after: boolean;
  /** How long the id is accepted at most once, even when its record has gone; absent: as long as the record is kept. */
  onceMs?: number;
  /** The request whose answer it waits for, so that it has no job; absent: it runs by itself. */
  follows?: string;
  resultTtlMs: number;
  document: RequestDocument;
  /** One input frame for each item. */
  payloads: readonly Buffer[];
}

/** One acceptance of an id, told from others of it by the nonce. */
type OneAcceptance = Pick<StoredRecord, 'requestId' | 'nonce'>;

/** @param texts of its partition and, behind a ";", of its tenant: see usage.ts */
export type UsageHeard = (shard: number, texts: string) => void;

/** gone: it was accepted before, and its record is not kept any more. */
export type AcceptVerdict = 'accepted' | 'known' | 'conflict' | 'gone';

/** What a request was when it was ended: its status before, or why nothing was changed. */
export type EndVerdict =
  | { changed: true; before: 'queued' | 'running' }
  | { changed: false; status: string | null };

export interface EndOptions {
  /** queued: only what no worker has begun to run. Default: whatever has not ended. */
  guard?: 'any' | 'queued';
  /** Default: whichever request has the id. */
  nonce?: string;
}

export class RequestStore {
  readonly #redis: Redis;
  readonly #payloads: PayloadSource;
  readonly keys: Keys;

  /** @param payloads where inputs are read; by default the same connection */
  constructor(redis: Redis, keys: Keys, payloads: PayloadSource = ordinarySource(redis)) {
    this.#redis = redis;
    this.#payloads = payloads;
    this.keys = keys;
  }

  /**
   * Payloads first, then the record: what has a record has its inputs. All commands leave before this returns its
   * promise, so what the caller sends next (the job) comes behind them. No pipeline object: ioredis gives each one a
   * copy of every command it knows, which costs more than the commands do; its own pipelining shares one a tick.
   * @param heard told, where it was accepted, what has not ended now
   */
  async accept(acceptance: Acceptance, heard?: UsageHeard): Promise<AcceptVerdict> {
    const { requestId, nonce, payloads, document } = acceptance;
    const shard = this.keys.shardOf(requestId);
    const record = [
      this.keys.record(requestId),
      this.keys.open(shard),
      this.keys.all(shard),
      this.keys.usage(shard),
    ];
    const payloadKeys = document.inline
      ? []
      : payloads.map((_, item) => this.keys.payload(requestId, nonce, item));
    const stored = payloadKeys.map((key, item) =>
      this.#redis.set(key, payloads[item] as Buffer, 'EX', UNOWNED_PAYLOAD_S),
    );
    const answer = callScript(
      this.#redis,
      'acceptRequest',
      [...record, ...payloadKeys],
      [
        requestId,
        nonce,
        acceptance.fingerprint,
        acceptance.acceptedAt,
        payloads.length,
        JSON.stringify(document),
        acceptance.resultTtlMs,
        acceptance.deadline,
        document.inline ? (payloads[0] as Buffer) : '',
        acceptance.finishDeadline,
        acceptance.after ? '1' : '',
        acceptance.deadline + acceptance.finishDeadline > 0 ? this.keys.due(shard) : '',
        useOf(acceptance),
        ...this.#wanted(acceptance),
      ],
    );
    const verdict = stored.length === 0 ? await answer : (await Promise.all([answer, ...stored]))[0];
    if (typeof verdict === 'string') {
      heard?.(shard, verdict);
      return 'accepted';
    }
    // The bytes just stored belong to no one: the first acceptance has its own under its own nonce.
    if (payloadKeys.length > 0) await this.#redis.unlink(...payloadKeys);
    if (verdict === 0) return 'known';
    return verdict === -1 ? 'conflict' : 'gone';
  }

  /** What few requests want of their acceptance. */
  #wanted({ requestId, onceMs, follows }: Acceptance): (string | number)[] {
    const once = onceMs === undefined ? ['', 0] : [this.keys.acceptedOnce(requestId), onceMs];
    if (follows !== undefined) return [...once, follows];
    return onceMs === undefined ? [] : once;
  }

  /**
   * Takes back what one call stored, when its sender was told that it was not accepted. Safe to repeat.
   * held: another call was answered with this record, so it stays.
   */
  async withdraw(requestId: string, nonce: string): Promise<'removed' | 'absent' | 'held'> {
    const shard = this.keys.shardOf(requestId);
    const reply = await callScript(
      this.#redis,
      'withdrawRequest',
      [this.keys.record(requestId), this.keys.open(shard), this.keys.all(shard)],
      [requestId, nonce, this.keys.tagOf(requestId)],
    );
    if (reply === 1) return 'removed';
    return reply === 0 ? 'absent' : 'held';
  }

  /** The record of each id, null where there is none. No pipeline: on a Cluster they lie on different servers. */
  async read(requestIds: readonly string[]): Promise<(StoredRecord | null)[]> {
    if (requestIds.length === 0) return [];
    // No pipeline object, as in accept(): most calls are for one record, and thousands wait at a time.
    const replies = await Promise.all(
      requestIds.map((id) => this.#redis.hmget(this.keys.record(id), ...RECORD_FIELDS)),
    );
    return requestIds.map((id, i) => readStoredRecord(id, replies[i] ?? []));
  }

  /** The outcome frame of each item, null where none is stored. */
  async readOutcomes(record: StoredRecord): Promise<(Buffer | null)[]> {
    const fields = Array.from({ length: record.items }, (_, item) => `o:${item}`);
    const frames = await this.#redis.hmgetBuffer(this.keys.record(record.requestId), ...fields);
    return Promise.all(frames.map((frame, item) => this.#followMark(record, item, frame)));
  }

  /** Bytes that the outcomes take, without reading them. */
  async outcomeBytes({ requestId }: Pick<StoredRecord, 'requestId'>): Promise<number> {
    const keys = [this.keys.record(requestId)];
    return (await callScript(this.#redis, 'measureOutcomes', keys, [
      this.keys.tagOf(requestId),
      requestId,
    ])) as number;
  }

  #followMark(
    record: StoredRecord,
    item: number,
    frame: Buffer | null,
  ): Promise<Buffer | null> | Buffer | null {
    if (frame?.readUInt32LE(0) !== 0) return frame;
    const token = Number(frame.toString('latin1', 4));
    return this.#redis.getBuffer(this.keys.largeResult(record.requestId, record.nonce, item, token));
  }

  /**
   * Ends a request that follows another with the outcomes of an identical one.
   * false: nothing was changed, since it has ended, runs by itself or is another one of that id
   */
  async answer({ requestId, nonce }: OneAcceptance, frames: readonly Buffer[]): Promise<boolean> {
    const stored: Promise<unknown>[] = [];
    const marks = frames.map((frame, item) => {
      if (frame.length < LARGE_OUTCOME_BYTES) return frame;
      const key = this.keys.largeResult(requestId, nonce, item, COPY_TOKEN);
      stored.push(this.#redis.set(key, frame, 'EX', UNFINISHED_OUTCOME_S));
      return Buffer.from(`\0\0\0\0${COPY_TOKEN}`, 'latin1');
    });
    const reply = callScript(
      this.#redis,
      'answerRequest',
      [this.keys.record(requestId), this.keys.open(this.keys.shardOf(requestId))],
      [requestId, this.keys.ended(), this.keys.tagOf(requestId), nonce, ...marks],
    );
    const [answered] = await Promise.all([reply, ...stored]);
    return answered === 1;
  }

  /**
   * Lets a request that waits for the answer of another wait for that of a third, or run by itself (null): then its job
   * is still to be added. false: nothing was changed.
   */
  async follow({ requestId, nonce, follows }: StoredRecord, leader: string | null): Promise<boolean> {
    const keys = [this.keys.record(requestId)];
    return (await callScript(this.#redis, 'followRequest', keys, [nonce, follows ?? '', leader ?? ''])) === 1;
  }

  /** Asks for every unit whether it may be run, marks its request as running, and fetches its input. */
  claimAndFetch(units: readonly BatchUnit[], workerId: string, begun = false): Promise<Claim[]> {
    return claimAndFetch(
      units,
      { workerId, begun },
      {
        redis: this.#redis,
        keys: this.keys,
        payloads: this.#payloads,
      },
    );
  }

  /** Stores outcomes behind the fence; ends requests that are complete and wakes whoever waits for them. */
  async writeOutcomes(writes: readonly UnitWrite[]): Promise<WriteVerdict[]> {
    const marks = new Map<UnitWrite, Buffer>();
    const stored: Promise<unknown>[] = [];
    for (const write of writes) {
      if (write.frame.length < LARGE_OUTCOME_BYTES) continue;
      const { requestId, nonce, item, token } = write.unit;
      const key = this.keys.largeResult(requestId, nonce, item, token);
      stored.push(this.#redis.set(key, write.frame, 'EX', UNFINISHED_OUTCOME_S));
      marks.set(write, Buffer.from(`\0\0\0\0${token}`, 'latin1'));
    }
    const verdicts = new Map<UnitWrite, WriteVerdict>();
    const writeShard = async (members: readonly UnitWrite[]): Promise<void> => {
      const first = (members[0] as UnitWrite).unit.requestId;
      const reply = (await callScript(
        this.#redis,
        'writeOutcomes',
        [this.keys.open(this.keys.shardOf(first)), ...members.map((w) => this.keys.record(w.unit.requestId))],
        [
          FINISH_ERROR,
          this.keys.ended(),
          this.keys.tagOf(first),
          this.keys.letterLimits,
          ...members.flatMap((write) => [
            write.unit.requestId,
            write.unit.item,
            write.unit.token,
            write.unit.nonce,
            kindOf(write),
            marks.get(write) ?? write.frame,
          ]),
        ],
      )) as string[];
      members.forEach((write, i) => {
        verdicts.set(write, {
          verdict: reply[2 * i] as WriteVerdict['verdict'],
          ended: (reply[2 * i + 1] || null) as WriteVerdict['ended'],
        });
      });
    };
    const shards = this.keys.byShard(writes, (write) => write.unit.requestId);
    // One write to the socket, and in this order: a mark is never there before what it stands for.
    await Promise.all([...stored, ...shards.map(writeShard)]);
    return writes.map((write) => verdicts.get(write) as WriteVerdict);
  }

  /**
   * Ends a request as a whole: cancelled, expired, or failed for a reason that is no item's. One whose deadline to
   * finish has passed ends as expired all the same, and nothing is said to have changed.
   * @param nonce of the one that is meant: another request may have its id by now, and then there is none
   */
  async end(
    requestId: string,
    status: TerminalStatus,
    error: ItemError,
    { guard = 'any', nonce = '' }: EndOptions = {},
  ): Promise<EndVerdict> {
    const reply = (await callScript(
      this.#redis,
      'endRequest',
      [this.keys.record(requestId), this.keys.open(this.keys.shardOf(requestId))],
      [
        requestId,
        FINISH_ERROR,
        this.keys.ended(),
        this.keys.tagOf(requestId),
        status,
        JSON.stringify(error),
        guard,
        status === 'failed' && isDeadLetter(error.code) && !isSpare(requestId) ? '1' : '',
        this.keys.letterLimits,
        nonce,
      ],
    )) as string;
    if (reply === 'missing') return { changed: false, status: null };
    if (reply === 'late') return { changed: false, status: 'expired' };
    if (reply.startsWith('=')) return { changed: false, status: reply.slice(1) };
    return { changed: true, before: reply as 'queued' | 'running' };
  }

  /** Up to `count` ids of requests one of whose deadlines has passed by the clock of Redis, the earliest first. */
  async listDue(shard: number, count: number): Promise<string[]> {
    return (await callScript(this.#redis, 'listDue', [this.keys.due(shard)], [count])) as string[];
  }

  /**
   * Ends a request as expired where one of its deadlines has passed by the clock of Redis: the one to start, while no
   * worker has it; the one to finish, in any state. null: none has, or it had ended.
   */
  async expire(requestId: string): Promise<{ before: 'queued' | 'running'; by: 'start' | 'finish' } | null> {
    const reply = (await callScript(
      this.#redis,
      'expireRequest',
      [this.keys.record(requestId), this.keys.open(this.keys.shardOf(requestId))],
      [
        requestId,
        this.keys.ended(),
        this.keys.tagOf(requestId),
        START_ERROR,
        FINISH_ERROR,
        this.keys.letterLimits,
      ],
    )) as string;
    const [before, by] = reply.split(' ');
    if (by !== 'start' && by !== 'finish') return null;
    return { before: before as 'queued' | 'running', by };
  }

  /**
   * Ids in the order of acceptance, newest first, strictly older than the cursor.
   * @param before score and id of the last one seen
   */
  list(before: Place | null, count: number): Promise<Place[]> {
    const sets = this.keys.allShards().map((shard) => this.keys.all(shard));
    return newestFirst(this.#redis, sets, before, count);
  }

  /** Ids of requests that have not ended, oldest first, accepted at `from` or later (Unix milliseconds). */
  async listOpen(shard: number, from: number, count: number): Promise<Place[]> {
    return placesOf(
      await this.#redis.zrangebyscore(this.keys.open(shard), from, '+inf', 'WITHSCORES', 'LIMIT', 0, count),
    );
  }

  async countOpen(): Promise<number> {
    const counts = await Promise.all(
      this.keys.allShards().map((shard) => this.#redis.zcard(this.keys.open(shard))),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** What is counted in some fields, by shard, as the texts of usage.ts. */
  async readUsage(fields: readonly string[]): Promise<(string | null)[][]> {
    return Promise.all(
      this.keys.allShards().map((shard) => this.#redis.hmget(this.keys.usage(shard), ...fields)),
    );
  }

  /** What has not ended: every partition and every tenant of which anything has not. */
  async allUsage(): Promise<Map<string, Usage>> {
    const shards = await Promise.all(
      this.keys.allShards().map((shard) => this.#redis.hgetall(this.keys.usage(shard))),
    );
    return sumUsage(shards);
  }

  /**
   * Counts the requests of a shard that have not ended anew, where the counters differ from their list: a build that
   * did not count, or records that were lost. One script of a few milliseconds, so nothing changes meanwhile.
   * busy: they differ, but more is open than one script may count; try again when less is.
   */
  async recountUsage(shard: number): Promise<'right' | 'mended' | 'busy'> {
    const tag = this.keys.usage(shard).slice(0, -':use'.length);
    const keys = [this.keys.usage(shard), this.keys.open(shard)];
    const reply = await callScript(this.#redis, 'recountUsage', keys, [tag, MOST_RECOUNTED]);
    return reply === 0 ? 'right' : reply === 1 ? 'mended' : 'busy';
  }

  /** Removes a request that has ended, with its outcomes: whoever wanted them has them. */
  async remove(record: StoredRecord): Promise<void> {
    const { requestId, nonce, token, items } = record;
    const shard = this.keys.shardOf(requestId);
    const outcomes = Array.from({ length: items }, (_, item) =>
      this.keys.largeResult(requestId, nonce, item, token),
    );
    await Promise.all([
      this.#redis.unlink(this.keys.record(requestId), ...outcomes),
      this.#redis.zrem(this.keys.all(shard), requestId),
      this.#redis.zrem(this.keys.open(shard), requestId),
    ]);
  }

  /** No longer lists a request as open (its record is gone or has ended). */
  async forgetOpen(requestId: string): Promise<void> {
    await this.#redis.zrem(this.keys.open(this.keys.shardOf(requestId)), requestId);
  }

  /** One step of a walk over the list of all requests: drops ids whose record has expired. Returns the next cursor. */
  async trimList(shard: number, cursor: string, count: number): Promise<{ cursor: string; removed: number }> {
    const [next, page] = await this.#redis.zscan(this.keys.all(shard), cursor, 'COUNT', count);
    const ids = placesOf(page).map((entry) => entry.id);
    if (ids.length === 0) return { cursor: next, removed: 0 };
    const present = await Promise.all(ids.map((id) => this.#redis.exists(this.keys.record(id))));
    const gone = ids.filter((_, i) => present[i] === 0);
    if (gone.length > 0) await this.#redis.zrem(this.keys.all(shard), ...gone);
    return { cursor: next, removed: gone.length };
  }

  /** Takes up to `count` ended requests about which something is to be done; they come again at `until`. */
  async takeAftermath(shard: number, now: number, until: number, count: number): Promise<string[]> {
    const reply = await callScript(
      this.#redis,
      'takeAftermath',
      [this.keys.after(shard)],
      [now, until, count],
    );
    return reply as string[];
  }

  /** Everything about the end of a request is done. @param nonce null: its record was gone */
  async finishAftermath(requestId: string, nonce: string | null, now: number): Promise<void> {
    const keys = [this.keys.record(requestId), this.keys.after(this.keys.shardOf(requestId))];
    await callScript(this.#redis, 'finishAftermath', keys, [
      requestId,
      now,
      this.keys.tagOf(requestId),
      nonce ?? '',
    ]);
  }

  /** Counts how often the sweeper has put a lost job back, those within `asOneMs` as one; 0: the record is gone. */
  async countRescue(requestId: string, asOneMs: number): Promise<number> {
    const record = this.keys.record(requestId);
    return (await callScript(this.#redis, 'countRescue', [record], [asOneMs])) as number;
  }

  /**
   * Gives a request another route, unless a worker has begun to run it; from then on whoever holds a job of the old
   * route is fenced. `abandoned`: also where it has begun, since its worker is known to have gone.
   */
  async reroute(
    { requestId, nonce }: Pick<StoredRecord, 'requestId' | 'nonce'>,
    route: Route,
    heldToken: number,
    abandoned: boolean,
  ): Promise<'moved' | 'refused'> {
    const reply = await callScript(
      this.#redis,
      'rerouteRequest',
      [this.keys.record(requestId), this.keys.usage(this.keys.shardOf(requestId))],
      [nonce, JSON.stringify(route), heldToken, abandoned ? 1 : 0, `${route.device_class}/${route.lane}`],
    );
    return reply === 1 ? 'moved' : 'refused';
  }
}

/** Nobody wants the copies of a shadow back, and a chunk's coordinator sends it again by itself. */
function isSpare(requestId: string): boolean {
  return isShadowId(requestId) || isChunkId(requestId);
}

function kindOf({ unit, kind, error }: UnitWrite): string {
  const kept = kind === 'error' && error && isDeadLetter(error.code) && !isSpare(unit.requestId);
  return kept ? `dead:${JSON.stringify(error)}` : kind;
}
