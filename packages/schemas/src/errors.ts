/**
 * The error catalogue: every code a user can meet, with its HTTP status, whether trying again can help, and one
 * sentence. Closed list: code that is not here cannot be thrown. docs/errors.md is checked against it by a test.
 */
import * as z from 'zod';

interface CatalogueEntry {
  /** HTTP status when the error ends a call; also the class of an item's error. */
  status: number;
  /** True when the same request may succeed later, unchanged. */
  retryable: boolean;
  /** What went wrong, for a person. */
  sentence: string;
}

export const ERROR_CATALOGUE = {
  // The body or the call itself
  malformed_json: { status: 400, retryable: false, sentence: 'The body is not valid JSON.' },
  malformed_frame: {
    status: 400,
    retryable: false,
    sentence: 'The binary body does not hold what its JSON header promises.',
  },
  invalid_request: {
    status: 422,
    retryable: false,
    sentence: 'The request does not have the shape it needs.',
  },
  invalid_input: { status: 422, retryable: false, sentence: "An input does not fit the model's signature." },
  invalid_parameter: {
    status: 422,
    retryable: false,
    sentence: 'A parameter is unknown to the model or has a wrong value.',
  },
  unsupported_feature: {
    status: 422,
    retryable: false,
    sentence: 'The model or this server does not offer the feature that was asked for.',
  },
  payload_too_large: { status: 413, retryable: false, sentence: 'The body is larger than the limit.' },
  unsupported_media_type: {
    status: 415,
    retryable: false,
    sentence: 'The content type of the body is not one that this route takes.',
  },
  not_acceptable: {
    status: 406,
    retryable: false,
    sentence: 'None of the accepted media types can be given.',
  },
  // Things that are not there, or not in a fitting state
  route_not_found: { status: 404, retryable: false, sentence: 'There is no such route.' },
  method_not_allowed: { status: 405, retryable: false, sentence: 'The route is not asked with this method.' },
  model_not_found: { status: 404, retryable: false, sentence: 'No model of that name is in the repository.' },
  version_not_found: { status: 404, retryable: false, sentence: 'The model has no such version.' },
  alias_not_found: { status: 404, retryable: false, sentence: 'The model has no such alias.' },
  model_not_loaded: {
    status: 409,
    retryable: true,
    sentence: 'No live worker has this version loaded, and none may load it by itself.',
  },
  request_not_found: {
    status: 404,
    retryable: false,
    sentence: 'No request of that id is known: it never was, or its retention time has passed.',
  },
  request_terminal: { status: 409, retryable: false, sentence: 'The request has already ended.' },
  request_id_conflict: {
    status: 409,
    retryable: false,
    sentence: 'Another request already has this request_id and different content.',
  },
  device_not_allowed: {
    status: 422,
    retryable: false,
    sentence: "The device asked for is not among those that the model's rules allow.",
  },
  dead_letter_not_found: {
    status: 404,
    retryable: false,
    sentence: 'No dead letter of that id is kept: there was none, it was discarded, or its time has passed.',
  },
  webhook_not_found: {
    status: 404,
    retryable: false,
    sentence: 'No webhook endpoint, event or delivery of that id is known.',
  },
  batch_not_found: {
    status: 404,
    retryable: false,
    sentence: 'No bulk job of that id is known: it never was, or its time has passed.',
  },
  file_not_found: {
    status: 404,
    retryable: false,
    sentence: 'No file of that id or path is there: it never was, it was deleted, or its time has passed.',
  },
  batch_state: {
    status: 409,
    retryable: false,
    sentence: 'The bulk job is not in a state in which that can be done.',
  },
  output_exists: {
    status: 409,
    retryable: false,
    sentence: 'There is a file where the output should go, and overwriting it was not asked for.',
  },
  key_not_found: { status: 404, retryable: false, sentence: 'There is no API key of that id.' },
  tenant_not_found: { status: 404, retryable: false, sentence: 'There is no tenant of that name.' },
  // Who calls, and what they may
  unauthorized: { status: 401, retryable: false, sentence: 'The call has no valid API key.' },
  forbidden: {
    status: 403,
    retryable: false,
    sentence: 'The API key does not have the scope that this needs.',
  },
  webhook_refused: {
    status: 422,
    retryable: false,
    sentence: 'The webhook may not be sent to that address.',
  },
  // The same call again
  idempotency_key_invalid: {
    status: 400,
    retryable: false,
    sentence: 'The Idempotency-Key is not a quoted string of 1 to 255 printable characters.',
  },
  idempotency_in_progress: {
    status: 409,
    retryable: true,
    sentence: 'The first call with this Idempotency-Key has not been answered yet.',
  },
  idempotency_mismatch: {
    status: 422,
    retryable: false,
    sentence: 'This Idempotency-Key was used for a call with other content.',
  },
  // Load and trouble
  over_capacity: { status: 429, retryable: true, sentence: 'The queue of this model is full.' },
  tenant_over_quota: {
    status: 429,
    retryable: true,
    sentence: 'The tenant has as much waiting as it may have.',
  },
  rate_limited: { status: 429, retryable: true, sentence: 'The API key has sent more than its rate allows.' },
  deadline_unreachable: {
    status: 429,
    retryable: true,
    sentence: 'The request would not begin, or not end, before its deadline; nothing was accepted.',
  },
  store_unavailable: {
    status: 503,
    retryable: true,
    sentence: 'Redis cannot be reached or does not answer in time; nothing was accepted.',
  },
  store_full: {
    status: 503,
    retryable: true,
    sentence: 'Redis is close to its memory limit; nothing was accepted.',
  },
  signature_unavailable: {
    status: 503,
    retryable: true,
    sentence: "The model's signature is not known: no worker has published it and it could not be read here.",
  },
  shutting_down: { status: 503, retryable: true, sentence: 'This server is stopping.' },
  internal: {
    status: 500,
    retryable: true,
    sentence: 'An error that should not happen; the log has the details.',
  },
  // How an item of an accepted request can end
  item_rejected: { status: 422, retryable: false, sentence: 'The bytes of the item could not be decoded.' },
  inference_failed: { status: 422, retryable: false, sentence: 'The model failed on this item.' },
  output_mismatch: {
    status: 500,
    retryable: false,
    sentence: 'The model gave an output whose batch dimension is not the number of rows it was given.',
  },
  runner_crashed: {
    status: 500,
    retryable: false,
    sentence: 'The runner process died while it ran this item alone.',
  },
  run_timeout: {
    status: 504,
    retryable: false,
    sentence: 'The run of this item alone took longer than timeout_ms; the runner was replaced.',
  },
  deadline_exceeded: {
    status: 504,
    retryable: true,
    sentence: 'A deadline passed: the request had not begun, or not ended, by then.',
  },
  cancelled: { status: 409, retryable: false, sentence: 'The request was cancelled.' },
  model_load_failed: { status: 500, retryable: true, sentence: 'The model could not be loaded.' },
  golden_mismatch: {
    status: 422,
    retryable: false,
    sentence: "The version's golden cases do not hold, so it takes no traffic.",
  },
  payload_missing: {
    status: 500,
    retryable: true,
    sentence: 'The stored input of the item is gone.',
  },
  worker_lost: {
    status: 500,
    retryable: true,
    sentence: 'Every worker that took the request was lost before it could finish it.',
  },
  // How a row or a bulk job can fail beside that
  invalid_row: {
    status: 422,
    retryable: false,
    sentence: 'The row cannot be read, or does not fit the input of the model.',
  },
  invalid_file: {
    status: 422,
    retryable: false,
    sentence: 'The file is damaged, cut off, or not what its name says.',
  },
  duplicate_custom_id: {
    status: 422,
    retryable: false,
    sentence: 'Two rows have the same custom_id.',
  },
  too_many_errors: {
    status: 422,
    retryable: false,
    sentence: 'More rows have failed than max_errors allows.',
  },
  batch_expired: {
    status: 504,
    retryable: true,
    sentence: 'The completion window of the bulk job passed before the row was run.',
  },
  source_unreadable: {
    status: 422,
    retryable: true,
    sentence: 'The worker cannot read the source of the chunk; it is sent to it in another way.',
  },
  disk_full: {
    status: 507,
    retryable: true,
    sentence: 'There is no room left where the output is written.',
  },
  // Fetching a model from its source
  source_unavailable: {
    status: 502,
    retryable: true,
    sentence: "The model's source cannot be reached, or stopped answering.",
  },
  source_invalid: {
    status: 422,
    retryable: false,
    sentence: "What the model's source holds is not what was promised, or not a model.",
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
export const ErrorCode = z
  .enum(Object.keys(ERROR_CATALOGUE) as [ErrorCode, ...ErrorCode[]])
  .describe('A code from the closed error catalogue.');

/** The error of one item, or of a whole request. */
export const ItemError = z
  .strictObject({
    code: ErrorCode,
    message: z.string().describe('What was wrong, where, what was expected, what to do.'),
    retryable: z.boolean().describe('True when the same request may succeed later.'),
    details: z.record(z.string(), z.unknown()).optional().describe('Facts that a program can use.'),
  })
  .meta({ id: 'ItemError' });
export type ItemError = z.infer<typeof ItemError>;

/** One finding about an invalid input. */
export const Violation = z
  .strictObject({
    path: z.string().describe('Where, as a dotted path from the body: inputs.x.shape[1].'),
    expected: z.string().describe('What would have been right.'),
    received: z.string().describe('What came.'),
  })
  .meta({ id: 'Violation' });
export type Violation = z.infer<typeof Violation>;

/** An error as clients of the OpenAI API read it. */
export const OpenAiError = z
  .strictObject({
    message: z.string(),
    type: z.string(),
    code: ErrorCode,
    param: z.string().nullable().describe('Where, as path of the first finding.'),
  })
  .meta({ id: 'OpenAiError' });
export type OpenAiError = z.infer<typeof OpenAiError>;

/** The body of every HTTP error: application/problem+json (RFC 9457) with the code and the path of each finding. */
export const Problem = z
  .strictObject({
    type: z.string().describe('urn:remuda:error:<code>'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: ErrorCode,
    retryable: z.boolean(),
    instance: z.string().optional(),
    trace_id: z.string().optional(),
    errors: z.array(Violation).optional(),
    suggestions: z.array(z.string()).optional().describe('Near names, where a name was not found.'),
    'violated-policies': z
      .array(z.string())
      .optional()
      .describe('Names of the limits that the call went over, as in the field RateLimit-Policy.'),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Facts that a program can use; docs/errors.md says of which codes.'),
    error: OpenAiError.optional().describe(
      'Of /v1/files and /v1/batches alone: the same once more, where the OpenAI clients look for it.',
    ),
  })
  .meta({ id: 'Problem' });
export type Problem = z.infer<typeof Problem>;
