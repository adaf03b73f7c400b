/**
 * What is sent, the states it goes through, and the record of it. File 1 of the tour; the route that takes it is
 * apps/producer-api/src/routes/inference-requests.ts.
 *
 *   queued → running → succeeded | partial | failed | cancelled | expired     (a terminal state never changes)
 */
import * as z from 'zod';
import { ItemError } from './errors.js';
import { VersionRef } from './model-versions.js';
import { InputValue } from './tensor.js';
import { WebhookOption } from './webhook.js';

export const LIMITS = {
  /** Items of one request. */
  items: 1_000,
  /** Rows of one request, all items together. */
  rows: 100_000,
  /** Requests of one call of POST /v1/requests:batch. */
  batchRequests: 1_000,
  /** Longest wait that Prefer: wait=s or ?wait=s is given, in seconds. */
  waitSeconds: 60,
  /** Longest retention of a result that a request may ask for, in seconds. */
  resultTtlSeconds: 7 * 24 * 3600,
  /** Longest timeout_ms that a request may ask for. */
  timeoutMs: 24 * 3600 * 1000,
} as const;

export const RequestId = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,127}$/, {
    error: 'a letter, then up to 127 letters, digits, "_" or "-"',
  })
  .describe('Identifies the request; sending the same id and content twice is one request.');

export const ModelName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,99}$/, { error: 'lower-case letters, digits, ".", "_", "-"; at most 100' })
  .describe('Name of a model: its folder in the repository.');

const LANE = 'Kind of traffic; interactive goes before bulk, which keeps a share of the rows.';
export const AskedLane = z.enum(['interactive', 'bulk']).describe(LANE);
export const Lane = z
  .enum(['interactive', 'bulk', 'chunks'])
  .describe(`${LANE} chunks: the pieces of bulk jobs.`);
export type Lane = z.infer<typeof Lane>;

export const TERMINAL_STATUSES = ['succeeded', 'partial', 'failed', 'cancelled', 'expired'] as const;
export const RequestStatus = z
  .enum(['queued', 'running', ...TERMINAL_STATUSES])
  .describe('partial: some items succeeded, some did not.');
export type RequestStatus = z.infer<typeof RequestStatus>;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** True when the status can no longer change. */
export function isTerminal(status: RequestStatus): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly string[]).includes(status);
}

/** RFC 3339 has years of four digits: what is later in UTC could be taken and not be told again. */
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');
const PointInTime = z.iso
  .datetime({ offset: true })
  .refine((text) => !(Date.parse(text) > LATEST), { error: 'a point in time before the year 10000 in UTC' });

export const RequestMetadata = z
  .strictObject({
    priority: z
      .int()
      .min(0)
      .max(9)
      .default(5)
      .describe(
        'Among what the same tenant has waiting 0 goes first, 9 last; none waits for ever. Change it to let urgent work overtake.',
      ),
    timeout_ms: z
      .int()
      .min(1)
      .max(LIMITS.timeoutMs)
      .optional()
      .describe(
        'Time to start, from acceptance, in milliseconds: a request that has not begun to run by then ends as expired.',
      ),
    start_by: PointInTime.optional().describe(
      'The same as a point in time (RFC 3339); where both are given, the earlier counts.',
    ),
    finish_timeout_ms: z
      .int()
      .min(1)
      .max(LIMITS.timeoutMs)
      .optional()
      .describe(
        'Time to finish, from acceptance, in milliseconds: a request that has not ended by then ends as expired, even where it runs; a later answer is thrown away.',
      ),
    finish_by: PointInTime.optional().describe(
      'The same as a point in time (RFC 3339); where both are given, the earlier counts.',
    ),
    sticky_key: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Requests of one key go to the same version while a split is in force: a user id, say.'),
    result_ttl_s: z
      .int()
      .min(1)
      .max(LIMITS.resultTtlSeconds)
      .optional()
      .describe(
        'How long result and record are kept after the end, in seconds; default is the server’s (3600).',
      ),
    tags: z
      .record(z.string().min(1).max(64), z.string().max(256))
      .refine((tags) => Object.keys(tags).length <= 16, { error: 'at most 16 tags' })
      .optional()
      .describe('Your own labels; returned with the record.'),
  })
  .meta({ id: 'RequestMetadata' });
export type RequestMetadata = z.infer<typeof RequestMetadata>;

const Inputs = z
  .record(z.string().min(1).max(256), InputValue)
  .describe('Tensor or bare value by input name.');

export const RequestItem = z
  .strictObject({
    id: z.string().min(1).max(128).optional().describe('Your name for the item; returned with its outcome.'),
    inputs: Inputs,
  })
  .meta({ id: 'RequestItem' });

/** Everything of a request but its inputs: what the JSON part of a multipart body may hold. */
export const RequestOptions = z.strictObject({
  request_id: RequestId.optional(),
  parameters: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Checked against the schema that the model’s harness declares.'),
  stream: z.boolean().optional().describe('An error on a harness that cannot stream.'),
  metadata: RequestMetadata.optional(),
  version: VersionRef.optional().describe(
    'Version number or alias of the model; default is its alias stable, else the newest that is ready.',
  ),
  device: z
    .string()
    .min(1)
    .max(40)
    .optional()
    .describe('Device class to run on, within what the model allows.'),
  webhook: WebhookOption.optional(),
  cache: z
    .enum(['use', 'bypass'])
    .optional()
    .describe(
      'Whether an answer may come from the result cache of the model, where it has one. Default use; bypass runs it in any case.',
    ),
});
export type RequestOptions = z.infer<typeof RequestOptions>;

/**
 * One InferenceRequest. The model stands in the URL. Exactly one of `inputs` (one input set of one or more rows) and
 * `items` (up to 1,000 independent input sets, each with its own outcome).
 */
export const InferenceRequest = RequestOptions.extend({
  inputs: Inputs.optional(),
  items: z.array(RequestItem).min(1).max(LIMITS.items).optional(),
})
  .refine((request) => (request.inputs === undefined) !== (request.items === undefined), {
    error: 'exactly one of "inputs" and "items"',
  })
  .meta({ id: 'InferenceRequest' });
export type InferenceRequest = z.infer<typeof InferenceRequest>;

/** Body of POST /v1/requests:batch. Each request is accepted or refused on its own, so each is checked alone. */
export const BatchSubmission = z
  .strictObject({
    lane: AskedLane.default('interactive'),
    requests: z
      .array(z.unknown())
      .min(1)
      .max(LIMITS.batchRequests)
      .describe('Each an InferenceRequest with a "model" beside it.'),
  })
  .meta({ id: 'BatchSubmission' });

/** A device class that was considered, with the facts of that moment. */
export const RouteCandidate = z
  .strictObject({
    device_class: z.string(),
    workers: z.int().describe('Live workers that have the version there, or can load it.'),
    instances: z.int(),
    rows_ahead: z.int().describe('Rows that wait in its queue or are being run.'),
    seconds_per_row: z.number().nullable().describe('null: not measured yet.'),
    expected_s: z.number().nullable().describe('Expected time to completion; null: cannot be said.'),
    verdict: z.string().describe('Chosen, or why not.'),
  })
  .meta({ id: 'RouteCandidate' });
export type RouteCandidate = z.infer<typeof RouteCandidate>;

/** The recorded decision which version and which device class a request goes to, with the reasons. */
export const Route = z
  .strictObject({
    device_class: z.string(),
    lane: Lane,
    reasons: z.array(z.string()).describe('Why, in the order the facts were used.'),
    candidates: z.array(RouteCandidate).optional(),
    facts_age_ms: z.int().optional().describe('Age of the oldest of these facts.'),
    requested: z.string().optional().describe('The device class that the request itself asked for.'),
    version_reason: z.string().optional().describe('How the version was chosen.'),
    fallback_for: z
      .string()
      .optional()
      .describe('The model that was asked for, where another answers for it.'),
  })
  .meta({ id: 'Route' });
export type Route = z.infer<typeof Route>;

const Timestamp = z.iso.datetime().describe('RFC 3339, UTC.');

export const RequestRecord = z
  .strictObject({
    request_id: z.string(),
    model: z.string(),
    version: z.string(),
    digest: z.string().describe('Digest of the version, as it was known at acceptance.'),
    status: RequestStatus,
    tenant: z.string(),
    items: z.strictObject({ total: z.int(), succeeded: z.int(), failed: z.int() }),
    rows: z.int(),
    metadata: RequestMetadata,
    route: Route,
    attempts: z.int().describe('How often a worker took it up.'),
    error: ItemError.nullable().describe('Why the request as a whole did not succeed.'),
    created_at: Timestamp,
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
    deadline_at: Timestamp.nullable().describe('When a request that has not begun to run expires.'),
    finish_deadline_at: Timestamp.nullable().describe('When a request that has not ended expires.'),
    expires_at: Timestamp.describe(
      'When record and result are removed; while the request has not ended, when they would be if it ended now.',
    ),
    trace_id: z.string(),
    queue: z
      .strictObject({
        position: z.int().describe('Requests before it in its queue; 0: it is next.'),
        rows_ahead: z.int(),
        eta_ms: z.int().nullable().describe('Expected time until it has ended; null: not measured yet.'),
        eta_at: Timestamp.nullable(),
      })
      .nullable()
      .optional()
      .describe('While it waits; given by GET /v1/requests/{id}.'),
    notices: z
      .array(z.string())
      .describe('What is worth knowing, such as that no live worker serves the model.'),
    cached_from: z
      .string()
      .optional()
      .describe('The identical request whose answer it got, from the result cache or while both waited.'),
    urls: z.strictObject({ self: z.string(), result: z.string(), cancel: z.string() }),
  })
  .meta({ id: 'RequestRecord' });
export type RequestRecord = z.infer<typeof RequestRecord>;

export const RequestPage = z
  .strictObject({
    requests: z.array(RequestRecord),
    next_cursor: z.string().nullable().describe('Give it as ?cursor= for the next page; null at the end.'),
  })
  .meta({ id: 'RequestPage' });

export const CancelOutcome = z
  .enum(['removed_from_queue', 'stopped_before_run', 'ran_but_suppressed'])
  .describe(
    'removed_from_queue: no worker had it. stopped_before_run: a worker had it and will drop it. ran_but_suppressed: its batch was in the runner already; what it answers from now on is thrown away (items that had ended keep their outcome).',
  );
export type CancelOutcome = z.infer<typeof CancelOutcome>;

export const CancelAnswer = z
  .strictObject({
    request_id: z.string(),
    outcome: CancelOutcome,
    status: RequestStatus,
    expires_at: Timestamp,
  })
  .meta({ id: 'CancelAnswer' });
export type CancelAnswer = z.infer<typeof CancelAnswer>;
