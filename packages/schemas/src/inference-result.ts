/** What comes back: one InferenceResult for each request, success or error, kept until expires_at. */
import * as z from 'zod';
import { ItemError } from './errors.js';
import { RequestStatus, Route, TERMINAL_STATUSES } from './inference-request.js';
import { Tensor } from './tensor.js';

const Outputs = z.record(z.string(), Tensor).describe('Output tensors by name.');

/** Times of one item's way, in milliseconds, and the batch it ran in. */
export const ItemMetrics = z
  .strictObject({
    queue_ms: z.number().describe('From acceptance until its batch was closed.'),
    run_ms: z.number().describe('Time of the run that held its rows (of all runs, where it was split).'),
    total_ms: z.number().describe('From acceptance until its outcome was written.'),
    batch_rows: z.int().describe('Rows of that run, neighbours included.'),
    batch_id: z.string(),
    worker_id: z.string(),
    device: z.string(),
    provider: z.string().describe('The execution provider that really ran.'),
  })
  .meta({ id: 'ItemMetrics' });
export type ItemMetrics = z.infer<typeof ItemMetrics>;

export const ItemResult = z
  .strictObject({
    id: z.string().nullable(),
    index: z.int(),
    status: z.enum(['succeeded', 'failed', 'cancelled', 'expired']),
    outputs: Outputs.nullable(),
    error: ItemError.nullable(),
    metrics: ItemMetrics.nullable(),
    model_extra: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'ItemResult' });
export type ItemResult = z.infer<typeof ItemResult>;

export const InferenceResult = z
  .strictObject({
    request_id: z.string(),
    model: z.string(),
    version: z.string(),
    digest: z.string().describe('Digest of the version, as it was known at acceptance.'),
    status: RequestStatus.extract([...TERMINAL_STATUSES]),
    outputs: Outputs.nullable().describe(
      'Of a request with `inputs`; null where `items` holds them, or on error.',
    ),
    items: z.array(ItemResult).nullable().describe('Of a request with `items`: one outcome each, in order.'),
    error: ItemError.nullable(),
    metrics: ItemMetrics.nullable(),
    model_extra: z.record(z.string(), z.unknown()).describe('What the harness adds beside the outputs.'),
    route: Route,
    attempts: z.int(),
    created_at: z.iso.datetime(),
    started_at: z.iso.datetime().nullable(),
    finished_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    trace_id: z.string(),
  })
  .meta({ id: 'InferenceResult' });
export type InferenceResult = z.infer<typeof InferenceResult>;
