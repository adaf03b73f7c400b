/**
 * The promise behind the 202, in four steps: resolve version and route, admit, store, enqueue. File 3 of the tour.
 *
 * Told "accepted" means: record, inputs and job are in Redis. Told anything else means: nothing is, or it is being
 * taken back (withdrawals.ts). A request whose job was lost all the same is found by sweep-requests.ts.
 *
 * Next: store/request-store.ts, then queue/job-queue.ts; many at once: submit-many.ts.
 */
import type { DeviceClass, ModelSignature, Route } from '@remuda/schemas';
import { isTerminal } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { Clock } from '../lifecycle/clock.js';
import type { ModelAsk, ModelResolver, Target } from '../models/model-resolver.js';
import type { LifeLog } from '../observability/events.js';
import type { Metrics } from '../observability/metrics.js';
import { type JobQueues, ticketOf } from '../queue/job-queue.js';
import { type Partition, queueName } from '../queue/partitions.js';
import type { Acceptance, AcceptVerdict, RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import type { EndpointView } from '../webhooks/endpoint-view.js';
import type { Admission, Admitted } from './admission.js';
import { checkDeadlines, type DeadlineQuestion } from './check-deadlines.js';
import type { Doorbell } from './doorbell.js';
import { prepareRequest } from './prepare-request.js';
import { presentRequest, recordOf } from './present-request.js';
import { resolveRoute } from './resolve-route.js';
import type { RowMeans } from './row-means.js';
import type { StoreGuard } from './store-guard.js';
import type { Submission, SubmitAnswer } from './submission.js';
import { type Steps, type SubmitCachedDeps, submitCached } from './submit-cached.js';
import { rowsOf } from './validate-inputs.js';
import type { Withdrawals } from './withdrawals.js';

export interface SubmitDeps {
  store: RequestStore;
  queues: JobQueues;
  guard: StoreGuard;
  admission: Admission;
  withdrawals: Withdrawals;
  fleet: Pick<FleetView, 'liveClasses' | 'classFacts' | 'ageMs' | 'catchUp'>;
  rowMeans: RowMeans;
  resolver: Pick<ModelResolver, 'resolve' | 'isReady'>;
  doorbell: Pick<Doorbell, 'ring'>;
  metrics: Pick<Metrics, 'accepted' | 'payloadBytes' | 'resultCache'>;
  /** What is done with requests of models that have a result cache. */
  cached: SubmitCachedDeps;
  shadows?: { offer(acceptance: Acceptance): void };
  /** Which tenants and keys have webhook endpoints. */
  endpoints: Pick<EndpointView, 'wants'>;
  /** What a 202 waits for beyond Redis's own answer; default: nothing. */
  replicas?: { confirm(): Promise<void> };
  /** Told of each 202. */
  lost?: { note(requestId: string, resultTtlMs: number): void };
  life: LifeLog;
  clock: Clock;
  /** How long results are kept where the request does not say. */
  resultTtlS: number;
  /** Whether a request that cannot be expected to meet its deadline is refused. Default true. */
  refuseHopeless?: boolean;
}

/** A submission that is ready to be stored. */
export interface Prepared {
  acceptance: Acceptance;
  partition: Partition;
  traceId: string;
  /** The user gave the id, or the call has an Idempotency-Key: it may be known. */
  supplied: boolean;
  admitted: Admitted;
}

const NOTICES_NONE: string[] = [];
/** While it waits, queue-outlook.ts says it anew. */
export const NO_WORKER = 'no live worker serves this model; it waits in the queue';

export class RequestSubmitter {
  readonly #deps: SubmitDeps;

  constructor(deps: SubmitDeps) {
    this.#deps = deps;
  }

  /** @throws RemudaError; then nothing was accepted */
  async submit(submission: Submission): Promise<SubmitAnswer> {
    const prepared = await this.prepare(submission);
    try {
      const answer = await this.#deps.guard.run(() => this.replicated(this.#store(prepared)));
      return answer ?? this.accepted(prepared);
    } catch (error) {
      throw this.refused(prepared, error);
    }
  }

  /** Steps three and four. undefined: accepted, and nobody was told of it yet. */
  async #store(prepared: Prepared): Promise<SubmitAnswer | undefined> {
    if (prepared.acceptance.document.cache) return this.storeCached(prepared);
    if (prepared.supplied) return this.#acceptThenEnqueue(prepared);
    await this.#acceptAndEnqueue(prepared);
    return undefined;
  }

  /** Steps three and four of a request that may have the answer of another. */
  storeCached(prepared: Prepared): Promise<SubmitAnswer> {
    const steps: Steps = {
      acceptAndEnqueue: async (leader) => {
        if (leader.supplied) return this.#acceptThenEnqueue(leader);
        await this.#acceptAndEnqueue(leader);
        return this.accepted(leader);
      },
      acceptOnly: (follower) => this.#acceptOnly(follower),
      accepted: (follower) => this.accepted(follower),
    };
    return submitCached(prepared, steps, this.#deps.cached);
  }

  /** Steps one and two, and everything that needs no Redis. */
  async prepare(submission: Submission): Promise<Prepared> {
    const { resolver, admission, guard, clock, resultTtlS, fleet, endpoints } = this.#deps;
    const target = submission.target ?? (await resolver.resolve(askOf(submission)));
    const { signature } = target;
    if (!guard.ready) await guard.run(async () => {});
    if (fleet.liveClasses(signature.model, signature.version).size === 0) await fleet.catchUp();
    const { route, partition, notices, rows } = this.#resolveRoute(submission, signature);
    const late = await this.#checkDeadlines({ submission, route, partition, version: signature.version });
    const { model: asked, tenant } = submission;
    const admitted = await admission.admit({ partition, tenant, asked, rows, bytes: bytesOf(submission) });
    try {
      const acceptance = prepareRequest({
        submission,
        signature,
        route: withTarget(route, target),
        notices: allNotices(target.notices, notices, late),
        resultCache: submission.chunk ? undefined : target.resultCache,
        defaultResultTtlS: resultTtlS,
        after: !submission.chunk && (submission.options.webhook !== undefined || endpoints.wants(submission)),
        now: clock.now(),
      });
      if (target.resultCache && submission.options.cache === 'bypass')
        this.#deps.metrics.resultCache.inc({ model: signature.model, outcome: 'bypass' });
      const { options, reserved, chunk } = submission;
      const supplied = (options.request_id ?? reserved ?? chunk) !== undefined;
      return { acceptance, partition, traceId: submission.traceId, supplied, admitted };
    } catch (error) {
      admission.leave(admitted);
      throw error;
    }
  }

  /** Step three: the record, with what it counts as. */
  async accept({ acceptance, admitted }: Prepared): Promise<AcceptVerdict> {
    const { store, admission } = this.#deps;
    try {
      return await store.accept(acceptance, (shard, texts) => admission.leave(admitted, shard, texts));
    } finally {
      admission.leave(admitted);
    }
  }

  #resolveRoute(
    { options, lane, items, chunk }: Submission,
    signature: ModelSignature,
  ): { route: Route; partition: Partition; notices: string[]; rows: number } {
    const { fleet, admission, rowMeans, clock } = this.#deps;
    const { model, affinity, version } = signature;
    const rows = chunk?.rows ?? items.reduce((sum, { tensors }) => sum + rowsOf(tensors, signature), 0);
    const question = { model, version, requested: options.device, affinity, lane, rows };
    const route = resolveRoute(question, { fleet, depths: admission.depths, rowMeans, clock });
    // One of many thousand rows says nothing of what others are like.
    if (!chunk) rowMeans.count(model, rows);
    const deviceClass = route.device_class as DeviceClass;
    const partition = { model, deviceClass, lane };
    if (!fleet.liveClasses(model, version).has(deviceClass))
      return { route, partition, rows, notices: [NO_WORKER] };
    return { route, partition, rows, notices: NOTICES_NONE };
  }

  #checkDeadlines(question: DeadlineQuestion): Promise<string | undefined> | undefined {
    // Most have none, and shall not wait for a turn of the event loop.
    if (question.submission.options.metadata === undefined) return undefined;
    const { fleet, admission, queues, rowMeans, clock, store, guard, refuseHopeless = true } = this.#deps;
    return checkDeadlines(question, {
      ...{ fleet, depths: admission.depths, queues, rowMeans, refuseHopeless },
      isKnown: async (requestId) => {
        const [record] = await guard.run(() => store.read([requestId]));
        return record != null;
      },
      now: () => clock.now(),
    });
  }

  /** Steps three and four of an id that nobody has seen yet: both leave in the same tick, the record first. */
  async #acceptAndEnqueue(prepared: Prepared): Promise<void> {
    const { acceptance, partition } = prepared;
    const { queues } = this.#deps;
    const [verdict] = await Promise.all([
      this.accept(prepared),
      queues.of(partition).add(ticketOf(recordOf(acceptance))),
    ]);
    if (verdict !== 'accepted') throw conflict(acceptance.requestId);
  }

  /** The same for an id that may be known: whether there is a job to add turns out with the answer. */
  async #acceptThenEnqueue(prepared: Prepared): Promise<SubmitAnswer> {
    const { acceptance, partition } = prepared;
    const known = await this.#acceptOnly(prepared);
    if (known !== 'accepted') return known;
    await this.#deps.queues.of(partition).add(ticketOf(recordOf(acceptance)));
    return this.accepted(prepared);
  }

  /** What was stored counts when the replicas that are waited for have it, too. */
  async replicated<T>(stored: Promise<T>): Promise<T> {
    const answer = await stored;
    await this.#deps.replicas?.confirm();
    return answer;
  }

  async #acceptOnly(prepared: Prepared): Promise<SubmitAnswer | 'accepted'> {
    const { requestId } = prepared.acceptance;
    const verdict = await this.accept(prepared);
    throwIfTaken(verdict, requestId);
    return verdict === 'known' ? this.known(requestId) : 'accepted';
  }

  /** Answers with what is there, and makes sure of its job: an earlier call may have died between the two. */
  async known(requestId: string): Promise<SubmitAnswer> {
    const { store, queues, clock, cached } = this.#deps;
    const [record] = await store.read([requestId]);
    // Its time was up between the two answers of Redis.
    if (!record) throw new RemudaError('internal', `request ${requestId} has just expired: send it again`);
    if (record.follows !== null) await cached.coalescing.settle(record);
    else if (!isTerminal(record.status)) {
      const partition = partitionOfRecord(record);
      await queues.of(partition).add(ticketOf(record));
      this.#wake(partition, record.document.version);
    }
    return { record: presentRequest(record, clock.now()), known: true, quotas: [] };
  }

  /** Tells log, metrics and, where it sleeps, the fleet of an acceptance, and presents it. */
  accepted(prepared: Prepared): SubmitAnswer {
    const { metrics, life, clock, admission } = this.#deps;
    const { acceptance, partition } = prepared;
    const runs = acceptance.follows === undefined;
    const isChunk = partition.lane === 'chunks';
    if (runs) this.#wake(partition, acceptance.document.version);
    const { model, deviceClass: device_class, lane } = partition;
    metrics.accepted.inc({ model, device_class, lane });
    for (const payload of acceptance.payloads) metrics.payloadBytes.observe({ model }, payload.length);
    if (life.enabled) this.#logAcceptance(prepared);
    // Its coordinator keeps account of a chunk, and removes it when it has the answers.
    if (!isChunk) this.#deps.lost?.note(acceptance.requestId, acceptance.resultTtlMs);
    if (runs && !isChunk) this.#deps.shadows?.offer(acceptance);
    const quotas = admission.quotas(partition, acceptance.document.tenant);
    return { record: presentRequest(recordOf(acceptance), clock.now()), known: false, quotas };
  }

  /** Workers have no consumer on the queue of a model that they have not loaded. */
  #wake(partition: Partition, version: string): void {
    const { resolver, doorbell } = this.#deps;
    const { model, deviceClass } = partition;
    if (!resolver.isReady(model, version, deviceClass)) doorbell.ring(partition);
  }

  #logAcceptance({ acceptance, partition, traceId }: Prepared): void {
    const { life } = this.#deps;
    const { document, requestId, payloads } = acceptance;
    const { model, version, tenant, rows, route } = document;
    const ids = { trace_id: traceId, request_id: requestId };
    life.accepted({ ...ids, model, version, tenant, items: payloads.length, rows });
    if (acceptance.follows !== undefined) return;
    life.routed({ ...ids, device_class: route.device_class, lane: route.lane, reasons: route.reasons });
    life.enqueued({ ...ids, queue: queueName(partition) });
  }

  /** Makes sure that nothing stays of a request that is refused now. Returns what to throw. */
  refused({ acceptance, partition, admitted }: Prepared, error: unknown): RemudaError {
    const { guard, withdrawals, admission } = this.#deps;
    admission.leave(admitted);
    const explained = guard.explain(error);
    if (explained.code !== 'request_id_conflict' && explained.code !== 'request_not_found') {
      withdrawals.add({ requestId: acceptance.requestId, nonce: acceptance.nonce, partition });
    }
    return explained;
  }
}

function allNotices(ofTarget: readonly string[], ofRoute: string[], late?: string): string[] {
  if (ofTarget.length === 0 && late === undefined) return ofRoute;
  return [...ofTarget, ...ofRoute, ...(late === undefined ? [] : [late])];
}

/** What of a request decides where it goes. */
export function askOf({ model, options }: Pick<Submission, 'model' | 'options'>): ModelAsk {
  return { model, version: options.version, stickyKey: options.metadata?.sticky_key };
}

/** Of its inputs, about as they will be stored. */
function bytesOf({ items }: Submission): number {
  let bytes = 0;
  for (const { tensors, frame } of items) {
    if (frame) bytes += frame.length;
    else for (const tensor of tensors) bytes += tensor.bytes.byteLength;
  }
  return bytes;
}

function withTarget(route: Route, { versionReason, fallbackFor }: Target): Route {
  const version_reason = versionReason;
  return fallbackFor === undefined
    ? { ...route, version_reason }
    : { ...route, version_reason, fallback_for: fallbackFor };
}

/** @throws RemudaError where an id is taken, or was and is over */
export function throwIfTaken(verdict: AcceptVerdict, requestId: string): void {
  if (verdict === 'conflict') throw conflict(requestId);
  if (verdict !== 'gone') return;
  const message = `request ${requestId}, which this call had made, has ended, and the time for which it was kept has passed`;
  throw new RemudaError('request_not_found', message, { request_id: requestId });
}

function conflict(requestId: string): RemudaError {
  return new RemudaError(
    'request_id_conflict',
    `request_id "${requestId}" belongs to a request with other content: send this one under another id`,
  );
}

export function partitionOfRecord({ document }: StoredRecord): Partition {
  const { model, route } = document;
  return { model, deviceClass: route.device_class as DeviceClass, lane: route.lane };
}
