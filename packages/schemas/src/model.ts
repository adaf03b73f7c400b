/** A model: how it is configured (model.yaml), and what it takes and gives (its signature). */
import * as z from 'zod';
import { Datatype } from './datatypes.js';
import { Lane, ModelName } from './inference-request.js';
import { LoadMode, LoadState, VersionPolicy } from './model-versions.js';
import { Retries } from './retries.js';

export const DEVICE_CLASSES = ['cpu', 'cuda', 'tensorrt', 'webgpu', 'coreml', 'dml'] as const;
export const DeviceClass = z.enum(DEVICE_CLASSES).describe('The class of a device; cuda:0 is of class cuda.');
export type DeviceClass = z.infer<typeof DeviceClass>;

/** Longest `timeout_ms` of a run: a day. Timers of Node end at once beyond 24.8 days. */
export const LONGEST_RUN_MS = 86_400_000;

export const PRECISIONS = ['fp32', 'fp16', 'int8'] as const;
export const Precision = z.enum(PRECISIONS);
export type Precision = z.infer<typeof Precision>;

/** Where a model may run, and on what conditions. The bare name of a class is a rule without conditions. */
export const AffinityRule = z
  .strictObject({
    device: z
      .string()
      .regex(new RegExp(`^(?:${DEVICE_CLASSES.join('|')})(?::\\d{1,3})?$`), {
        error: `a device class (${DEVICE_CLASSES.join(', ')}) or one device of it, such as cuda:0`,
      })
      .describe('A device class, or one device such as cuda:0.'),
    min_free_memory_mib: z
      .int()
      .min(1)
      .optional()
      .describe('Memory that must be free there before the load.'),
    max_utilisation: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe('Of a GPU, at the time of the load: 0.8 keeps off one that is busier than 80 %.'),
    min_compute_capability: z.number().min(1).max(99).optional().describe('Of an NVIDIA GPU, such as 7.5.'),
    min_cores: z.int().min(1).optional().describe('Usable cores of the machine.'),
    precision: Precision.optional().describe('Which file of `variants` is loaded there.'),
    allow_cpu_fallback: z
      .boolean()
      .default(false)
      .describe('Whether parts that the provider cannot run may run on the CPU; else the load fails.'),
  })
  .meta({ id: 'AffinityRule' });
export type AffinityRule = z.infer<typeof AffinityRule>;

/** Pads a variable axis so that inputs of different lengths can share a batch. */
export const PaddingRule = z
  .strictObject({
    input: z.string(),
    axis: z.int().min(1).describe('Axis of that input, batch axis counted.'),
    multiple_of: z
      .int()
      .min(1)
      .default(1)
      .describe('Lengths are padded up to a multiple of this: the bucket.'),
    value: z.number().default(0).describe('What is written into the padding.'),
    restore: z
      .array(
        z.strictObject({
          output: z.string(),
          axis: z.int().min(0),
          ratio: z
            .number()
            .positive()
            .default(1)
            .describe('Output length per input length; the true length is ceil(input length × ratio).'),
        }),
      )
      .default([])
      .describe('Outputs that are cut back to the true length.'),
  })
  .meta({ id: 'PaddingRule' });
export type PaddingRule = z.infer<typeof PaddingRule>;

/** Answers that are given again. */
export const ResultCacheRule = z
  .strictObject({
    ttl_s: z
      .number()
      .min(0)
      .max(7 * 24 * 3600)
      .describe(
        'How long an answer is kept, in seconds; 0: only requests under way at the same time share one.',
      ),
    max_bytes: z
      .int()
      .min(0)
      .max(1024 ** 4)
      .default(64 * 1024 ** 2)
      .describe(
        'Most bytes of Redis that the answers of this model take; what was used longest ago goes first.',
      ),
    shared: z
      .boolean()
      .default(false)
      .describe(
        'Whether tenants share answers. By the time that a request takes one can then tell whether another has sent the same.',
      ),
  })
  .meta({ id: 'ResultCacheRule' });
export type ResultCacheRule = z.infer<typeof ResultCacheRule>;

export const HarnessConfig = z
  .strictObject({
    description: z.string().default(''),
    labels: z.record(z.string(), z.string()).default({}),
    harness: z
      .string()
      .min(1)
      .describe('Name of a harness kind, or "./file.mjs" beside model.yaml for one of your own.'),
    model_path: z.string().default('model.onnx').describe('File in the version folder.'),
    device: DeviceClass.optional().describe('Preferred device class: goes before all others of `affinity`.'),
    precision: Precision.default('fp32').describe(
      'Which file of `variants` is loaded where a rule names none.',
    ),
    variants: z
      .partialRecord(Precision, z.string().min(1))
      .default({})
      .describe('File in the version folder by precision; model_path where there is none.'),
    version_policy: VersionPolicy.default('latest').describe('Which versions are kept loaded.'),
    load_mode: LoadMode.default('eager').describe('When a version is loaded.'),
    pinned: z.boolean().default(false).describe('Never unloaded to make room for another model.'),
    fallback_model: ModelName.optional().describe(
      'Model that answers while this one has no version that is ready, or fails.',
    ),
    latency_objective_ms: z
      .number()
      .positive()
      .max(600_000)
      .optional()
      .describe('With it the batch size adapts: the p95 of a run is held below this.'),
    max_batch_size: z
      .int()
      .min(1)
      .max(65_536)
      .default(8)
      .describe('Most rows of one run. On CPU 4-16 is often best: the working set stays in the cache.'),
    max_queue_delay_ms: z
      .number()
      .min(0)
      .max(60_000)
      .default(2)
      .describe('Longest time rows wait for company while every instance is busy.'),
    instances: z.int().min(1).max(64).default(1).describe('Sessions side by side on one device.'),
    intra_op_threads: z.int().min(1).max(256).default(1).describe('Threads of one session.'),
    timeout_ms: z
      .int()
      .min(1)
      .max(LONGEST_RUN_MS)
      .default(30_000)
      .describe('Longest time of one run; then the runner is replaced.'),
    retries: Retries.default({}),
    affinity: z
      .array(z.union([DeviceClass, AffinityRule]))
      .min(1)
      .optional()
      .describe('Where it may run, best first; default is `device`, or cpu.'),
    batch_axis: z
      .record(z.string(), z.int().min(0).max(15).nullable())
      .default({})
      .describe('Batch axis of an input or output, where it is not found; null: it has none.'),
    padding: z.array(PaddingRule).default([]),
    warmup: z
      .array(z.strictObject({ rows: z.int().min(1), dims: z.record(z.string(), z.int().min(1)).default({}) }))
      .default([{ rows: 1, dims: {} }])
      .describe('Runs made before the model takes traffic; dims gives sizes to symbolic axes.'),
    result_cache: ResultCacheRule.optional().describe(
      'Keeps answers and gives them to identical requests; without it every request is run.',
    ),
    model_kwargs: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('What only this harness kind knows.'),
  })
  .meta({ id: 'HarnessConfig' });
export type HarnessConfig = z.infer<typeof HarnessConfig>;

export const SignatureTensor = z
  .strictObject({
    name: z.string(),
    datatype: Datatype,
    shape: z
      .array(z.union([z.int().min(0), z.string()]))
      .describe('A number is fixed, a name is a symbolic axis.'),
    batch_axis: z.int().min(0).nullable().describe('null: the input is shared by all rows of a batch.'),
    kind: z.enum(['tensor', 'image']).describe('image: each BYTES element is an encoded image file.'),
  })
  .meta({ id: 'SignatureTensor' });
export type SignatureTensor = z.infer<typeof SignatureTensor>;

/** What a model version takes and gives, as published by the workers under its digest. */
export const ModelSignature = z
  .strictObject({
    model: ModelName,
    version: z.string(),
    digest: z.string().describe('sha256 over the files of the version and its configuration.'),
    harness: z.string(),
    inputs: z.array(SignatureTensor),
    outputs: z.array(SignatureTensor),
    batchable: z.boolean().describe('False: rows run one by one.'),
    max_batch_size: z.int(),
    padding: z.array(PaddingRule),
    parameters_schema: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('JSON Schema; null: takes none.'),
    streams: z.boolean(),
    affinity: z.array(DeviceClass),
  })
  .meta({ id: 'ModelSignature' });
export type ModelSignature = z.infer<typeof ModelSignature>;

export const ModelSummary = z
  .strictObject({
    name: ModelName,
    description: z.string(),
    labels: z.record(z.string(), z.string()),
    versions: z.array(z.string()),
    default_version: z
      .string()
      .nullable()
      .describe('What requests without a version get now; of a split the stable side. null: none.'),
    aliases: z.record(z.string(), z.string()).describe('Version that each alias leads to now.'),
    states: z
      .partialRecord(LoadState, z.int())
      .describe('How many copies (one version on one device of one worker) are in which state.'),
    workers: z.int().describe('Live workers that have it loaded.'),
    queues: z.array(
      z.strictObject({ device_class: DeviceClass, lane: Lane, waiting: z.int(), active: z.int() }),
    ),
    problems: z
      .array(z.string())
      .describe('Why a version cannot be served, as the repository or a worker says.'),
  })
  .meta({ id: 'ModelSummary' });
export type ModelSummary = z.infer<typeof ModelSummary>;

export const ModelDetail = ModelSummary.extend({
  config: HarnessConfig.nullable(),
  signature: ModelSignature.nullable(),
}).meta({ id: 'ModelDetail' });
export type ModelDetail = z.infer<typeof ModelDetail>;
