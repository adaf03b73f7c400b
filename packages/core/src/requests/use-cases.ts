/**
 * The use cases of a request as one bundle: what the API calls. Puts the parts together and owns their lives; each
 * use case itself stands in a file of its own beside this one.
 */
import type { TenantLimits } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import { CursorSealer } from '../access/cursor-sealer.js';
import { TenantView } from '../access/tenant-view.js';
import type { ClassFacts } from '../fleet/class-index.js';
import { FleetView } from '../fleet/fleet-view.js';
import { type Clock, systemClock } from '../lifecycle/clock.js';
import { type Service, ServiceGroup } from '../lifecycle/service.js';
import { LostAcceptances } from '../mend/lost-acceptances.js';
import { DeploymentView } from '../models/deployment-view.js';
import type { ModelReports } from '../models/describe-admin-models.js';
import { ModelAdmin, type ModelAdminDeps } from '../models/edit-models.js';
import { ModelResolver } from '../models/model-resolver.js';
import { ShadowCopies } from '../models/shadow-copies.js';
import { readShadowReport } from '../models/shadow-report.js';
import { readSplitStats } from '../models/split-stats.js';
import type { LifeLog } from '../observability/events.js';
import type { Logger } from '../observability/logger.js';
import type { Metrics } from '../observability/metrics.js';
import { JobQueues } from '../queue/job-queue.js';
import type { Partition } from '../queue/partitions.js';
import { CacheStore } from '../store/cache-store.js';
import type { Keys } from '../store/keys.js';
import { LetterStore } from '../store/letter-store.js';
import { OnceStore } from '../store/once-store.js';
import type { Redis } from '../store/redis.js';
import { RequestStore } from '../store/request-store.js';
import { EndpointView } from '../webhooks/endpoint-view.js';
import { webhookParts } from '../webhooks/webhook-parts.js';
import { type WebhookUseCases, webhookUseCases } from '../webhooks/webhook-use-cases.js';
import { Admission } from './admission.js';
import { afterEnd } from './after-end.js';
import { Aftermath } from './aftermath.js';
import { cancelRequest } from './cancel-request.js';
import type { QueueLimits } from './capacity-limits.js';
import { Catalogue, type CatalogueOptions } from './catalogue.js';
import { Coalescing } from './coalescing.js';
import { DeadLetters } from './dead-letters.js';
import { describeModel, describeModels } from './describe-models.js';
import { Doorbell } from './doorbell.js';
import { expireRequest } from './expire-due.js';
import { type GetDeps, getRequest } from './get-request.js';
import { Idempotency } from './idempotency.js';
import { listRequests } from './list-requests.js';
import { presentRequest } from './present-request.js';
import { queueOutlook, withOutlook } from './queue-outlook.js';
import { readResult } from './read-result.js';
import { RowMeans } from './row-means.js';
import { StoreGuard } from './store-guard.js';
import type { RequestUseCases } from './submission.js';
import { submitMany } from './submit-many.js';
import { RequestSubmitter } from './submit-request.js';
import { RequestWaiters } from './wait-for-request.js';
import { Withdrawals } from './withdrawals.js';

export interface RequestUseCaseDeps {
  /** A connection of role `api`. */
  redis: Redis;
  /** A connection of role `subscriber`, for this bundle alone. */
  subscriber: Redis;
  keys: Keys;
  /** Folder of the model repository, or null. */
  repository: string | null;
  logger: Logger;
  life: LifeLog;
  metrics: Metrics;
  /** How long results are kept where the request does not say, in seconds. Default 3600. */
  resultTtlS?: number;
  /** Of each queue; default 50,000 requests (at 1-2 KB each 100 MB of Redis) and nothing else. */
  limits?: Partial<QueueLimits>;
  /** What a tenant may have that has not ended; default: what is set of it. */
  limitsOf?(tenant: string): TenantLimits;
  /** What a 202 waits for beyond Redis's own answer; default: nothing. */
  replicas?: { confirm(): Promise<void> };
  /** Rows of head start that one level of priority gives. Default: PRIORITY_STEP_ROWS. */
  priorityStepRows?: number;
  /** How long an idempotency key is remembered, in seconds. Default a day. */
  idempotencyTtlS?: number;
  /** Whether a request that cannot be expected to meet its deadline is refused. Default true. */
  refuseHopeless?: boolean;
  clock?: Clock;
  inspect?: CatalogueOptions['inspect'];
  /** For splits: from 0 to below 1. */
  random?: () => number;
  /** What the fleet has measured about splits and shadows; default: what the workers keep in Redis. */
  reports?: ModelAdminDeps['reports'];
}

export type RequestUseCaseService = RequestUseCases &
  Service & {
    /** Refuses new requests from now on (shutting_down); everything else goes on until stop(). */
    drain(): void;
    /** Refused requests that are still to be taken back from Redis. */
    readonly unwithdrawn: number;
    /** For what else looks at queues or the fleet, such as gauges. */
    readonly queues: JobQueues;
    readonly store: RequestStore;
    /** The door, for what shows how full it is. */
    readonly admission: Admission;
    readonly fleetView: FleetView;
    /** The desired states of models, and edits of them. */
    readonly deployments: DeploymentView;
    readonly admin: ModelAdmin;
    readonly webhooks: WebhookUseCases;
    /** What was given up. */
    readonly deadLetters: DeadLetters;
    readonly letters: LetterStore;
    /** For the sweeper. */
    readonly coalescing: Coalescing;
  };

export function createRequestUseCases(deps: RequestUseCaseDeps): RequestUseCaseService {
  const parts = partsOf(deps);
  const { store, queues, guard, fleet, catalogue, deployments, resolver } = parts;
  const { admission, withdrawals, submitter, waiters } = parts;
  const describe = { catalogue, fleet, deployments, resolver, queues, guard };
  const { life, metrics, clock = systemClock } = deps;
  const now = (): number => clock.now();
  const { reading, sealer } = parts;
  const read = (requestId: string, sight?: Sight) => getRequest(requestId, reading, sight);
  const services = lifeOf(parts, deps);
  const measured = async (model: string): Promise<ModelReports> => {
    const deployment = deployments.of(model);
    const { redis, keys } = deps;
    const [split, shadow] = await guard.run(() =>
      Promise.all([
        readSplitStats({ redis, keys, deployment, serving: deployments.serving(model) }),
        readShadowReport({ redis, keys }, deployment),
      ]),
    );
    return { split: split && { ...split }, shadow: shadow && { ...shadow } };
  };
  return {
    name: services.name,
    start: () => services.start(),
    stop: () => services.stop(),
    drain: () => admission.close(),
    get unwithdrawn() {
      return withdrawals.size;
    },
    queues,
    store,
    admission,
    fleetView: fleet,
    deployments,
    deadLetters: parts.deadLetters,
    letters: parts.letters,
    coalescing: parts.coalescing,
    admin: new ModelAdmin({
      catalogue,
      deployments,
      resolver,
      fleet,
      guard,
      clock,
      reports: deps.reports ?? measured,
    }),

    webhooks: webhookUseCases({ ...parts.webhooks, view: parts.endpointView, guard, clock }),

    resolve: (ask) => resolver.resolve(ask),
    signatureOf: async (model, version) => (await resolver.resolve({ model, version })).signature,
    submit: (submission) => submitter.submit(submission),
    submitMany: (submissions) => submitMany(submissions, { submitter, queues, guard }),
    refusal: (model, lane, tenant) => admission.refusal(model, lane, tenant),
    beginOnce: (call) => parts.idempotency.begin(call),
    async get(requestId, sight) {
      const record = await read(requestId, sight);
      const outlook = await guard.run(() => queueOutlook(record, parts.outlook));
      return withOutlook(presentRequest(record, now()), outlook);
    },
    waitFor: async (requestId, ms, signal, sight) =>
      presentRequest(await waiters.waitFor(requestId, ms, signal, sight), now()),
    async result(requestId, sight) {
      const record = await read(requestId, sight);
      return guard.run(() => readResult(record, store));
    },
    list: (filter, sight) => listRequests(filter, { store, guard, now, sealer }, sight),
    cancel: (requestId, sight) =>
      cancelRequest(requestId, { ...reading, queues, life, metrics, store }, sight),
    models: () => describeModels(describe),
    model: (name) => describeModel(name, describe),
    fleet: async () => ({ workers: [...fleet.workers], at: new Date(now()).toISOString() }),
  };
}

function partsOf(deps: RequestUseCaseDeps) {
  const { redis, subscriber, keys, repository, logger, life, metrics, clock = systemClock, inspect } = deps;
  const { resultTtlS = 3600, idempotencyTtlS = 24 * 3600 } = deps;
  const onError = (err: Error): void =>
    logger.warn({ err }, 'background work of the API failed; it is tried again');
  const store = new RequestStore(redis, keys);
  const queues = new JobQueues({
    ...{ redis, keyPrefix: keys.space.prefix, onError },
    weightOf: (tenant) => tenants.of(tenant).weight,
    ...(deps.priorityStepRows === undefined ? {} : { priorityStepRows: deps.priorityStepRows }),
  });
  const guard = new StoreGuard(redis, metrics);
  const idempotency = new Idempotency({
    ...{ store: new OnceStore(redis, keys), guard, metrics, onError },
    ttlMs: idempotencyTtlS * 1000,
  });
  const fleet = new FleetView({ redis, keys, onError, clock });
  const deployments = new DeploymentView({
    ...{ redis, subscriber, keys, onError, clock },
    onChange: () => catalogue.update(),
  });
  const catalogue = new Catalogue({
    ...{ redis, keys, repository, fleet, onError, clock, inspect },
    deployments: () => deployments.deployments,
  });
  const resolver = new ModelResolver({ catalogue, deployments, fleet, random: deps.random });
  const doorbell = new Doorbell({ redis, keys, onError, clock });
  const tenants = new TenantView({ redis, subscriber, keys, onError, clock });
  const admission = new Admission({
    ...{ redis, queues, store, clock, random: deps.random },
    limits: { ...DEFAULT_LIMITS, ...deps.limits },
    limitsOf: deps.limitsOf ?? ((tenant) => tenants.of(tenant).limits),
    liveClasses: (model) => fleet.liveClasses(model),
    rowsPerS: (partition) => rowsPerS(fleet.classFacts(partition.model), partition.deviceClass),
  });
  const withdrawals = new Withdrawals({ store, queues, ready: () => guard.ready, logger, clock });
  const rowMeans = new RowMeans();
  const gates = { admission, withdrawals, guard };
  const shadows = new ShadowCopies({
    ...{ store, queues, deployments, metrics, clock, onError, random: deps.random },
    wake: (partition, version) => {
      if (!resolver.isReady(partition.model, version, partition.deviceClass)) doorbell.ring(partition);
    },
  });
  const cache = new CacheStore(redis, keys);
  const ring = (partition: Partition): void => doorbell.ring(partition);
  const coalescing = new Coalescing({ store, cache, queues, metrics, life, clock, ring });
  const webhooks = webhookParts({ redis, keys, clock, life, onError });
  const endpointView = new EndpointView({
    ...{ redis, subscriber, keys, clock, onError },
    endpoints: webhooks.endpoints,
  });
  const submitter = new RequestSubmitter({
    ...gates,
    replicas: deps.replicas,
    lost: new LostAcceptances({ redis, keys, clock, logger, metrics }),
    endpoints: endpointView,
    cached: { store, cache, coalescing, metrics, onError },
    shadows,
    store,
    queues,
    fleet,
    resolver,
    doorbell,
    metrics,
    life,
    rowMeans,
    clock,
    resultTtlS,
    refuseHopeless: deps.refuseHopeless,
  });
  const reading: GetDeps = {
    store,
    guard,
    now: () => clock.now(),
    expire: (record) =>
      expireRequest({ requestId: record.requestId, record }, { store, queues, metrics, life }),
  };
  const read = (requestId: string, sight: Sight) => getRequest(requestId, reading, sight);
  const waiters = new RequestWaiters({ subscriber, keys, read, metrics, clock, onError });
  const handlers = afterEnd({ store, outbox: webhooks.outbox, coalescing });
  const aftermath = new Aftermath({ redis, subscriber, store, handlers, onError, clock });
  const letters = new LetterStore(redis, keys);
  const sealer = new CursorSealer({ redis, keys });
  const deadLetters = new DeadLetters({
    ...{ letters, keys, guard, resolver, sealer },
    submit: (submission) => submitter.submit(submission),
  });
  const models = { catalogue, deployments, resolver };
  const outlook = { queues, fleet, deployments, depths: admission.depths, rowMeans, clock };
  return {
    store,
    queues,
    guard,
    fleet,
    ...models,
    tenants,
    admission,
    withdrawals,
    submitter,
    waiters,
    reading,
    outlook,
    aftermath,
    idempotency,
    coalescing,
    webhooks,
    endpointView,
    letters,
    sealer,
    deadLetters,
  };
}

const DEFAULT_LIMITS: QueueLimits = { requests: 50_000, rows: null, bytes: null, waitS: null };

/** Of all workers of a class together, while busy; all versions of the model share a queue. */
function rowsPerS(classes: readonly ClassFacts[], deviceClass: string): number | undefined {
  const seconds = classes.find((facts) => facts.deviceClass === deviceClass)?.secondsPerRow;
  return seconds ? 1 / seconds : undefined;
}

function lifeOf(
  {
    fleet,
    deployments,
    tenants,
    catalogue,
    waiters,
    withdrawals,
    admission,
    queues,
    aftermath,
    webhooks,
    endpointView,
  }: ReturnType<typeof partsOf>,
  { logger }: RequestUseCaseDeps,
): ServiceGroup {
  const closeQueues = async (): Promise<void> => {
    await Promise.all([queues.close(), webhooks.queue.close()]);
  };
  const queueService: Service = { name: 'queues', start: async () => {}, stop: closeQueues };
  const door: Service = { name: 'admission', start: async () => {}, stop: async () => admission.close() };
  // Stopped in reverse: first the door, last the queues that withdrawals still need.
  const views = [fleet, deployments, tenants, catalogue, endpointView];
  const services = [queueService, withdrawals, ...views, waiters, aftermath, door];
  return new ServiceGroup('requests', services, (service, err) => {
    logger.error({ err, stopping: service }, 'a service did not stop well');
  });
}
