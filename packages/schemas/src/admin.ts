/**
 * The admin API of models: what an operator sends, and how a model is described to one. The desired state itself is
 * model-deployment.ts; what is wrong with an edit is found by core/models/edit-models.ts.
 */
import * as z from 'zod';
import { ModelName } from './inference-request.js';
import { LiveSettings, ModelDeployment, ModelEvent, ServingState } from './model-deployment.js';
import {
  AliasName,
  LoadMode,
  LoadState,
  VersionNumber,
  VersionPolicy,
  VersionRef,
} from './model-versions.js';

const Digest = z.string().regex(/^[0-9a-f]{64}$/, { error: 'a digest: 64 lower-case hex digits' });
const Instances = z.int().min(1).max(64);

/** POST /v1/admin/models */
export const ModelRegistration = z
  .strictObject({
    name: ModelName,
    source: z
      .union([z.string().min(1).max(2_048), z.record(z.string(), z.unknown())])
      .optional()
      .describe(
        'Where its files come from: a folder, an http(s) address, s3://bucket/prefix, or the same as an object. A model of the repository needs none.',
      ),
    load_mode: LoadMode.optional(),
    version_policy: VersionPolicy.optional(),
    pinned: z.boolean().optional(),
    instances: Instances.optional(),
    settings: LiveSettings.optional(),
    digests: z
      .record(VersionNumber, Digest)
      .optional()
      .describe('Digest that the files of a version must have, by version.'),
  })
  .meta({ id: 'ModelRegistration' });
export type ModelRegistration = z.infer<typeof ModelRegistration>;

/** Settings as they are changed: what is not named stays, null gives a setting back to model.yaml. */
const SettingsPatch = z.strictObject({
  max_batch_size: LiveSettings.shape.max_batch_size.nullable(),
  max_queue_delay_ms: LiveSettings.shape.max_queue_delay_ms.nullable(),
  timeout_ms: LiveSettings.shape.timeout_ms.nullable(),
  latency_objective_ms: LiveSettings.shape.latency_objective_ms.describe('null: no objective.'),
  result_cache: LiveSettings.shape.result_cache.describe('null: no cache.'),
});

/** PATCH /v1/admin/models/{model}: what is not named stays as it is, null gives it back to model.yaml. */
export const ModelPatch = z
  .strictObject({
    load_mode: LoadMode.nullable().optional(),
    version_policy: VersionPolicy.nullable().optional(),
    pinned: z.boolean().nullable().optional(),
    instances: Instances.nullable().optional(),
    settings: SettingsPatch.nullable().optional().describe('null: all as model.yaml says.'),
    digests: z.record(VersionNumber, Digest.nullable()).optional().describe('null: not checked any more.'),
  })
  .refine((patch) => Object.keys(patch).length > 0, { error: 'at least one key' })
  .meta({ id: 'ModelPatch' });
export type ModelPatch = z.infer<typeof ModelPatch>;

/** POST …:load and …:unload; the body may be left out. */
export const VersionChoice = z
  .strictObject({
    version: VersionRef.optional().describe(
      'Number or alias. Without it :load takes the newest version and :unload takes all.',
    ),
  })
  .meta({ id: 'VersionChoice' });
export type VersionChoice = z.infer<typeof VersionChoice>;

/** PUT …/aliases/{alias} */
export const AliasTarget = z.strictObject({ version: VersionNumber }).meta({ id: 'AliasTarget' });
export type AliasTarget = z.infer<typeof AliasTarget>;

/** POST …:scale */
export const ModelScale = z
  .strictObject({
    instances: Instances.nullable().describe(
      'Sessions side by side on each device; null: as model.yaml says.',
    ),
  })
  .meta({ id: 'ModelScale' });
export type ModelScale = z.infer<typeof ModelScale>;

/** The answer to every edit. */
export const ModelEdited = z
  .strictObject({
    deployment: ModelDeployment,
    notices: z.array(z.string()).describe('What is worth knowing about the edit; it is done all the same.'),
  })
  .meta({ id: 'ModelEdited' });
export type ModelEdited = z.infer<typeof ModelEdited>;

/** One copy: a version on one device of one worker, as its heartbeat says. */
export const VersionCopy = z
  .strictObject({
    worker_id: z.string(),
    device: z.string(),
    digest: z.string(),
    provider: z.string(),
    state: LoadState,
    reason: z.string().nullable(),
    instances: z.int(),
    memory_bytes: z.int().nullable(),
    last_used_at: z.iso.datetime().nullable(),
    backlog_rows: z.int(),
    breaker: z.enum(['closed', 'open', 'half_open']),
  })
  .meta({ id: 'VersionCopy' });
export type VersionCopy = z.infer<typeof VersionCopy>;

export const AdminVersion = z
  .strictObject({
    version: VersionNumber,
    digest: z
      .string()
      .nullable()
      .describe('Of the files that this API or a worker has; null: not known yet.'),
    aliases: z.array(AliasName).describe('Aliases that are meant to lead to it.'),
    served_as: z.array(z.string()).describe('References that lead to it now: default, aliases.'),
    wanted: z
      .enum(['load', 'on_demand', 'idle', 'off'])
      .describe('load: at once. on_demand, idle: when a request asks for it. off: not.'),
    wanted_reason: z.string(),
    copies: z.array(VersionCopy),
  })
  .meta({ id: 'AdminVersion' });
export type AdminVersion = z.infer<typeof AdminVersion>;

export const Convergence = z
  .strictObject({
    done: z.boolean().describe('Nothing is under way any more; `failed` says what did not work.'),
    waiting_for: z.array(z.string()),
    failed: z.array(z.string()),
  })
  .meta({ id: 'Convergence' });
export type Convergence = z.infer<typeof Convergence>;

/** GET /v1/admin/models */
export const AdminModelSummary = z
  .strictObject({
    model: ModelName,
    registered: z.boolean().describe('False: taken out; requests for it are refused.'),
    source: z.string().nullable().describe('In short; null: the repository of each worker.'),
    revision: z.int(),
    load_mode: LoadMode.describe('That holds: the desired state’s, else that of model.yaml.'),
    versions: z.array(z.string()),
    default_version: z.string().nullable(),
    aliases: z.record(AliasName, VersionNumber),
    split: z.record(z.string(), z.number()).nullable().describe('Per cent by version or alias.'),
    shadow: z.string().nullable(),
    states: z.partialRecord(LoadState, z.int()),
    converged: z.boolean(),
    problems: z.array(z.string()),
  })
  .meta({ id: 'AdminModelSummary' });
export type AdminModelSummary = z.infer<typeof AdminModelSummary>;

export const AdminModelList = z
  .strictObject({ models: z.array(AdminModelSummary) })
  .meta({ id: 'AdminModelList' });
export type AdminModelList = z.infer<typeof AdminModelList>;

/** GET /v1/admin/models/{model} */
export const AdminModel = z
  .strictObject({
    model: ModelName,
    in_repository: z.boolean().describe('Whether the repository that this API sees has it.'),
    deployment: ModelDeployment,
    serving: ServingState.nullable().describe('What the fleet has agreed on; null: nothing yet.'),
    load_mode: LoadMode.describe('That holds.'),
    version_policy: VersionPolicy.describe('That holds.'),
    default_version: z.string().nullable(),
    fallback: z
      .string()
      .nullable()
      .describe(
        'The fallback_model that answers while this model cannot; null: it has none, or one that could not.',
      ),
    versions: z.array(AdminVersion),
    convergence: Convergence,
    split_report: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('How the sides of the split do; null: no split, or nothing measured yet.'),
    shadow_report: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('How the answers of the shadow differ; null: no shadow, or nothing compared yet.'),
    problems: z.array(z.string()),
  })
  .meta({ id: 'AdminModel' });
export type AdminModel = z.infer<typeof AdminModel>;

/** GET …/history */
export const ModelHistory = z
  .strictObject({ events: z.array(ModelEvent).describe('Newest first.') })
  .meta({ id: 'ModelHistory' });
export type ModelHistory = z.infer<typeof ModelHistory>;
