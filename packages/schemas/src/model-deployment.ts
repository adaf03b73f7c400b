/**
 * How a model is meant to be served: the desired state that the admin API edits, that lies in Redis and that every
 * worker converges to. What is not set here stands in model.yaml.
 */
import * as z from 'zod';
import { ModelName } from './inference-request.js';
import { LONGEST_RUN_MS, ResultCacheRule } from './model.js';
import { AliasName, LoadMode, VersionNumber, VersionPolicy, VersionRef } from './model-versions.js';

/** When a canary is taken back by itself. */
export const RollbackRule = z
  .strictObject({
    min_requests: z
      .int()
      .min(1)
      .default(200)
      .describe('Requests that each side must have ended before they are compared.'),
    max_error_rate_increase: z
      .number()
      .min(0)
      .max(1)
      .default(0.02)
      .describe(
        'Most by which the error rate of the canary may be above that of the stable: 0.02 is 2 points.',
      ),
    max_p95_ratio: z
      .number()
      .min(1)
      .default(1.5)
      .describe('Most times that the p95 run time of the canary may be that of the stable.'),
  })
  .meta({ id: 'RollbackRule' });
export type RollbackRule = z.infer<typeof RollbackRule>;

/** Requests that name no version are spread by weight. */
export const TrafficSplit = z
  .strictObject({
    stable: VersionRef.describe('The version that the others are compared with.'),
    weights: z
      .record(VersionRef, z.number().min(0).max(100))
      .describe('Per cent by version or alias; together 100.'),
    rollback: RollbackRule.nullable().default(null).describe('null: never taken back by itself.'),
  })
  .refine(
    ({ weights }) => Math.abs(Object.values(weights).reduce((sum, part) => sum + part, 0) - 100) < 1e-6,
    {
      error: 'weights that together are 100',
      path: ['weights'],
    },
  )
  .refine(({ stable, weights }) => Object.hasOwn(weights, stable), {
    error: 'a version that is among the weights',
    path: ['stable'],
  })
  .meta({ id: 'TrafficSplit' });
export type TrafficSplit = z.infer<typeof TrafficSplit>;

/** A version that runs copies of requests; its answers are compared and thrown away. */
export const ShadowRule = z
  .strictObject({
    version: VersionRef,
    sample: z.number().min(0).max(1).default(1).describe('Share of requests that are copied.'),
  })
  .meta({ id: 'ShadowRule' });
export type ShadowRule = z.infer<typeof ShadowRule>;

/** Settings that apply without a reload; each overrides the one of model.yaml. */
export const LiveSettings = z
  .strictObject({
    max_batch_size: z.int().min(1).max(65_536).optional(),
    max_queue_delay_ms: z.number().min(0).max(60_000).optional(),
    timeout_ms: z.int().min(1).max(LONGEST_RUN_MS).optional(),
    latency_objective_ms: z.number().positive().max(600_000).nullable().optional(),
    result_cache: ResultCacheRule.nullable().optional(),
  })
  .meta({ id: 'LiveSettings' });
export type LiveSettings = z.infer<typeof LiveSettings>;

/** The desired state of one model. */
export const ModelDeployment = z
  .strictObject({
    model: ModelName,
    revision: z.int().describe('Counts every change of any model: the higher, the newer.'),
    source: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('Where its files come from (ModelSourceSpec); null: from the repository of each worker.'),
    registered: z.boolean().describe('False: taken out; no worker serves it.'),
    load_mode: LoadMode.nullable().describe('null: as model.yaml says.'),
    version_policy: VersionPolicy.nullable().describe('null: as model.yaml says.'),
    loads: z
      .record(VersionNumber, z.enum(['loaded', 'unloaded']))
      .describe('Versions that were loaded or unloaded by name; goes before policy and mode.'),
    pinned: z.boolean().nullable(),
    instances: z.int().min(1).max(64).nullable().describe('Sessions side by side on each device.'),
    settings: LiveSettings,
    aliases: z.record(AliasName, VersionNumber),
    split: TrafficSplit.nullable(),
    shadow: ShadowRule.nullable(),
    digests: z
      .record(VersionNumber, z.string())
      .describe('Digest that the files of a version must have, where it was given.'),
    updated_at: z.iso.datetime(),
    updated_by: z.string(),
  })
  .meta({ id: 'ModelDeployment' });
export type ModelDeployment = z.infer<typeof ModelDeployment>;

/** Reference that requests without a version use; no alias may have this name. */
export const DEFAULT_REF = 'default';

/** What a reference means at present, and meant before. */
export const ServedRef = z.strictObject({
  version: VersionNumber,
  previous: VersionNumber.nullable(),
  since: z.iso.datetime(),
  reason: z.string(),
});
export type ServedRef = z.infer<typeof ServedRef>;

/**
 * Which version each reference (`default`, aliases) leads to, as the fleet has agreed: it moves to what is desired only
 * when that is ready wherever the version before it is. Written by the steward alone.
 */
export const ServingState = z
  .strictObject({ model: ModelName, refs: z.record(z.string(), ServedRef) })
  .meta({ id: 'ServingState' });
export type ServingState = z.infer<typeof ServingState>;

/** One entry of a model's history. */
export const ModelEvent = z
  .strictObject({
    at: z.iso.datetime(),
    who: z.string().describe('The caller, or fleet for what the fleet did by itself.'),
    what: z.string().describe('A verb: registered, loaded, alias_set, split_set, moved, rolled_back, …'),
    detail: z.record(z.string(), z.unknown()),
    revision: z.int().nullable(),
  })
  .meta({ id: 'ModelEvent' });
export type ModelEvent = z.infer<typeof ModelEvent>;
