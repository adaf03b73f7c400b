/**
 * The names of every key that Remuda itself keeps in Redis (BullMQ's own stand in queue/partitions.ts).
 *
 * A request's keys share the hash tag of its shard, so that one script can touch many requests of a shard, on a
 * Cluster too. One shard is right for a single Redis: then each batch is one script call. On a Cluster set more.
 */
import { createHash } from 'node:crypto';

export interface LetterLimits {
  /** How long a dead letter is kept, in milliseconds. */
  keptMs: number;
  /** Most letters; the oldest go first. */
  most: number;
  /** Most bytes of their inputs. */
  mostBytes: number;
}

/** A week; as much as a small Redis has room for. */
export const DEFAULT_LETTER_LIMITS: LetterLimits = {
  keptMs: 7 * 24 * 3600 * 1000,
  most: 10_000,
  mostBytes: 256 * 1024 * 1024,
};

export interface Keyspace {
  prefix: string;
  /** How many slots requests are spread over: 1 on a single Redis. */
  shards: number;
  /** What is kept of requests that were given up, in each shard. Default: DEFAULT_LETTER_LIMITS. */
  letters?: LetterLimits;
}

export class Keys {
  constructor(readonly space: Keyspace) {}

  /** The shard of a request id, 0 to shards - 1. */
  shardOf(requestId: string): number {
    if (this.space.shards === 1) return 0;
    return createHash('sha1').update(requestId).digest().readUInt32BE(0) % this.space.shards;
  }

  allShards(): number[] {
    return Array.from({ length: this.space.shards }, (_, shard) => shard);
  }

  /** Groups what concerns several requests, so that one script can take each group. */
  byShard<T>(members: readonly T[], idOf: (member: T) => string): T[][] {
    if (members.length === 0) return [];
    if (this.space.shards === 1) return [[...members]];
    const shards = new Map<number, T[]>();
    for (const member of members) {
      const shard = this.shardOf(idOf(member));
      const group = shards.get(shard);
      if (group) group.push(member);
      else shards.set(shard, [member]);
    }
    return [...shards.values()];
  }

  /** Hash: the record of a request, its outcomes, and its payload where that is small. */
  record(requestId: string): string {
    return `${this.tagOf(requestId)}:q:${requestId}`;
  }

  /** String: the input frame of one item. */
  payload(requestId: string, nonce: string, item: number): string {
    return `${this.tagOf(requestId)}:p:${requestId}:${nonce}:${item}`;
  }

  /** String: the output frame of one item, where it is large. The token keeps a fenced writer's bytes apart. */
  largeResult(requestId: string, nonce: string, item: number, token: number): string {
    return `${this.tagOf(requestId)}:o:${requestId}:${nonce}:${item}:${token}`;
  }

  /** String with a time to live: that id was accepted, and is not accepted anew when its record has gone. */
  acceptedOnce(requestId: string): string {
    return `${this.tagOf(requestId)}:once:${requestId}`;
  }

  /** Hash with a time to live: what became of the call with an idempotency key. */
  once(keyHash: string): string {
    return `${this.space.prefix}:once:${keyHash}`;
  }

  /** Base of all keys of the result cache of a model; the scripts build them. */
  resultCache(model: string): string {
    return `${this.space.prefix}:cache:{${model}}`;
  }

  /** Sorted set: ids of requests that have not ended, by time of acceptance. */
  open(shard: number): string {
    return `${this.#tagged(shard)}:open`;
  }

  /** Sorted set: ids of all requests that are kept, by time of acceptance. */
  all(shard: number): string {
    return `${this.#tagged(shard)}:all`;
  }

  /** Hash: what has not ended, by partition and by tenant. The scripts build it from tagOf(). */
  usage(shard: number): string {
    return `${this.#tagged(shard)}:use`;
  }

  /** Sorted set: ids of requests that were given up, by the time of that. */
  dead(shard: number): string {
    return `${this.#tagged(shard)}:dead`;
  }

  /** Counter: bytes of the inputs of these. */
  deadBytes(shard: number): string {
    return `${this.dead(shard)}:bytes`;
  }

  /** Hash: the dead letter of a request. */
  letter(requestId: string): string {
    return `${this.tagOf(requestId)}:d:${requestId}`;
  }

  /** String: the input frame of one item of a dead letter. */
  letterPayload(requestId: string, nonce: string, item: number): string {
    return `${this.tagOf(requestId)}:dp:${requestId}:${nonce}:${item}`;
  }

  /** The limits of dead letters as scripts take them. */
  get letterLimits(): string {
    const { keptMs, most, mostBytes } = this.space.letters ?? DEFAULT_LETTER_LIMITS;
    return `${keptMs} ${most} ${mostBytes}`;
  }

  /** Sorted set: ids of requests that have ended and about which something is still to be done, by time. */
  after(shard: number): string {
    return `${this.#tagged(shard)}:after`;
  }

  /** Sorted set: ids of requests that have a deadline and have not ended, by the deadline that passes next. Scripts build it from tagOf(). */
  due(shard: number): string {
    return `${this.#tagged(shard)}:due`;
  }

  /** Channel: something is to be done about the end of a request. The scripts build it from ended(). */
  afterChanged(): string {
    return `${this.ended()}:after`;
  }

  /** Channel: ids of requests that have just ended, joined by spaces. */
  ended(): string {
    return `${this.space.prefix}:ended`;
  }

  /** Hash: published signatures by model/version. */
  signatures(): string {
    return `${this.space.prefix}:signatures`;
  }

  /** Hash: desired state of each model, by name. */
  deployments(): string {
    return `${this.space.prefix}:{models}:desired`;
  }

  /** Counter: how often any desired state was changed. */
  deploymentsRevision(): string {
    return `${this.space.prefix}:{models}:revision`;
  }

  /** List: what was done to a model, newest first. */
  modelHistory(model: string): string {
    return `${this.space.prefix}:{models}:history:${model}`;
  }

  /** Hash: each API key by its id; secrets as their hashes. */
  apiKeys(): string {
    return `${this.space.prefix}:{access}:keys`;
  }

  /** Hash: when each API key was last used, Unix milliseconds. */
  apiKeyUses(): string {
    return `${this.space.prefix}:{access}:key-uses`;
  }

  /** String with a time to live: how much of its rate an API key has used. */
  apiKeyRate(keyId: string): string {
    return `${this.space.prefix}:rate:{${keyId}}`;
  }

  /** Hash: what is set of each tenant, by name. */
  tenants(): string {
    return `${this.space.prefix}:{access}:tenants`;
  }

  /** Stream: what was done by whom. */
  audit(): string {
    return `${this.space.prefix}:{access}:audit`;
  }

  /** String: random bytes with which cursors are sealed. */
  cursorSeal(): string {
    return `${this.space.prefix}:{access}:seal`;
  }

  /** Channel: an API key has changed; the message is its id. */
  apiKeysChanged(): string {
    return `${this.space.prefix}:access:keys`;
  }

  /** Channel: a tenant has changed; the message is its name. */
  tenantsChanged(): string {
    return `${this.space.prefix}:access:tenants`;
  }

  /** Hash: which version each model serves by default, by name. */
  serving(): string {
    return `${this.space.prefix}:{models}:serving`;
  }

  /** Hash with a time to live: counts of the versions of a model while its traffic is split, since that revision. */
  versionStats(model: string, revision: number): string {
    return `${this.space.prefix}:stats:{${model}}:${revision}`;
  }

  /** Hash with a time to live: how the shadow version of a model compares, since that revision. */
  shadowReport(model: string, revision: number): string {
    return `${this.space.prefix}:shadow:{${model}}:${revision}`;
  }

  /** Channel: the desired state of some model, or what it serves, has changed. */
  modelsChanged(): string {
    return `${this.space.prefix}:models:changed`;
  }

  /** Channel: a request waits for a model that no worker has loaded; the message is the name of its queue. */
  doorbell(): string {
    return `${this.space.prefix}:doorbell`;
  }

  /** Channel: an API asks for the signature of a version that is not loaded; the message is model/version. */
  signatureWanted(): string {
    return `${this.space.prefix}:signature-wanted`;
  }

  /** String with a time to live: a worker reads the signature of that version. */
  signatureReader(model: string, version: string): string {
    return `${this.space.prefix}:signature-reader:${model}/${version}`;
  }

  /** String with a time to live: who is the steward. In the slot of what only the steward writes. */
  stewardLease(): string {
    return `${this.space.prefix}:{models}:steward`;
  }

  /** String with a time to live: the heartbeat of a worker. */
  worker(workerId: string): string {
    return `${this.space.prefix}:worker:${workerId}`;
  }

  /** Sorted set: worker ids by time of their last heartbeat. */
  workers(): string {
    return `${this.space.prefix}:workers`;
  }

  /** String with a time to live: who is the sweeper. */
  sweeperLease(): string {
    return `${this.space.prefix}:sweeper`;
  }

  /** String with a time to live: who moves requests away from classes that have no worker any more. */
  rerouterLease(): string {
    return `${this.space.prefix}:rerouter`;
  }

  /** String with a time to live: written last, to see how far replicas have come. */
  replicaMark(): string {
    return `${this.space.prefix}:replica-mark`;
  }

  /** Hash: one event on its way to one address, with its body and the log of its attempts. */
  webhook(deliveryId: string): string {
    return `${this.space.prefix}:webhook:${deliveryId}`;
  }

  /** Set: ids of the deliveries about one request or batch. */
  webhooksOf(subject: string): string {
    return `${this.space.prefix}:webhooks:of:${subject}`;
  }

  /** Sorted set: ids of the deliveries that have not ended, by time of their next attempt. */
  webhooksDue(): string {
    return `${this.space.prefix}:webhooks:due`;
  }

  /** Hash: webhook endpoints of all tenants, by id. */
  webhookEndpoints(): string {
    return `${this.space.prefix}:webhooks:endpoints`;
  }

  /** Channel: some endpoint was added, removed, disabled or enabled. */
  webhookEndpointsChanged(): string {
    return `${this.space.prefix}:webhooks:endpoints:changed`;
  }

  /** Hash: the secret that the webhooks of a tenant are signed with, and those before that still sign. */
  webhookSecret(tenant: string): string {
    return `${this.space.prefix}:webhooks:secret:${tenant}`;
  }

  /** Hash: a bulk job: what was asked for, where it stands, what is wanted of it. */
  bulkJob(id: string): string {
    return `${this.space.prefix}:{bulk}:job:${id}`;
  }

  /** Sorted set: ids of the bulk jobs of a tenant (null: of all), by time of creation. */
  bulkJobs(tenant: string | null): string {
    return `${this.space.prefix}:{bulk}:jobs${tenant === null ? '' : `:of:${tenant}`}`;
  }

  /** Sorted set: ids of bulk jobs that a coordinator still has something to do for, by when they were last put in. */
  bulkOpen(): string {
    return `${this.space.prefix}:{bulk}:open`;
  }

  /** Sorted set: ids of bulk jobs that have ended, by the time of that. */
  bulkEnded(): string {
    return `${this.space.prefix}:{bulk}:ended`;
  }

  /** String with a time to live: who puts bulk jobs back that were lost, and clears old ones away. */
  bulkSweeperLease(): string {
    return `${this.space.prefix}:{bulk}:sweeper`;
  }

  /** Hash: what is known of a file in REMUDA_FILES. */
  bulkFile(id: string): string {
    return `${this.space.prefix}:{bulk}:file:${id}`;
  }

  /** Sorted set: ids of the files of a tenant (null: of all), by time of creation. */
  bulkFiles(tenant: string | null): string {
    return `${this.space.prefix}:{bulk}:files${tenant === null ? '' : `:of:${tenant}`}`;
  }

  /** Sorted set: ids of the files that are not kept for ever, by the time at which they go. */
  bulkFilesDue(): string {
    return `${this.space.prefix}:{bulk}:files:due`;
  }

  /** String: which folder REMUDA_FILES of this fleet is, as the marker in it says. */
  bulkFolder(): string {
    return `${this.space.prefix}:{bulk}:folder`;
  }

  /** String with a time to live: who deletes files whose time has passed. */
  bulkFileSweeperLease(): string {
    return `${this.space.prefix}:bulk:file-sweeper`;
  }

  /** Channel: id of a bulk job of which something else is wanted now. */
  bulkChanged(): string {
    return `${this.space.prefix}:bulk:changed`;
  }

  /** The hash tag, with prefix, that all keys of a request share; scripts build payload and outcome keys from it. */
  tagOf(requestId: string): string {
    return this.#tagged(this.shardOf(requestId));
  }

  #tagged(shard: number): string {
    return `${this.space.prefix}:{r${shard}}`;
  }
}
