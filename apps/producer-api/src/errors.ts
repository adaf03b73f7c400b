/**
 * The one place that turns whatever was thrown into application/problem+json (RFC 9457): status and retryable from the
 * catalogue, the path of each finding, Retry-After where trying again helps. What is not known is `internal`, and the
 * log has it.
 */
import { RemudaError } from '@remuda/core/errors';
import { newTraceId } from '@remuda/core/ids';
import { type Quota, quotasOf } from '@remuda/core/requests/quota';
import {
  ERROR_CATALOGUE,
  type ErrorCode,
  InvalidInputError,
  type Problem,
  type Violation,
  violationsOf,
} from '@remuda/schemas';
import { ZodError } from 'zod';
import { RangeError416 } from './byte-range.js';
import { violatedPolicies } from './rate-limit-fields.js';

/** Seconds until trying again makes sense, where the error does not say. */
const RETRY_AFTER_S = 2;
/** Findings whose text goes into `detail`; `errors` has them all. */
const MOST_IN_DETAIL = 3;

export interface ProblemContext {
  traceId: string;
  /** Path of the URL. */
  instance: string;
}

export interface ProblemAnswer {
  problem: Problem;
  headers: Record<string, string>;
  /** Of the limits that refused it; the caller writes them as RateLimit fields. */
  quotas: readonly Quota[];
}

/** Codes whose details are for callers. */
const TOLD: ReadonlySet<ErrorCode> = new Set(['deadline_unreachable']);

/** What is known of an error before it becomes a problem. */
interface Finding {
  code: ErrorCode;
  detail: string;
  /** Where it differs from the catalogue's. */
  status?: number;
  errors?: readonly Violation[];
  suggestions?: readonly string[];
  details?: Record<string, unknown>;
  headers?: Record<string, string>;
}

export function toProblem(error: unknown, { traceId, instance }: ProblemContext): ProblemAnswer {
  const { code, detail, status, errors, suggestions, details, headers: more } = findingOf(error);
  const entry = ERROR_CATALOGUE[code];
  const quotas = error instanceof RemudaError ? quotasOf(error.details) : [];
  const violated = violatedPolicies(quotas);
  const headers: Record<string, string> = { ...more };
  const problem: Problem = {
    type: `urn:remuda:error:${code}`,
    title: entry.sentence,
    status: status ?? entry.status,
    detail,
    code,
    retryable: entry.retryable,
    instance,
    trace_id: traceId || newTraceId(),
    ...(errors && errors.length > 0 ? { errors: [...errors] } : {}),
    ...(suggestions && suggestions.length > 0 ? { suggestions: [...suggestions] } : {}),
    ...(violated.length > 0 ? { 'violated-policies': violated } : {}),
    ...(details ? { details } : {}),
  };
  const waits = problem.status === 429 || problem.status === 503 || code === 'idempotency_in_progress';
  const again = waits ? retryAfter(error) : undefined;
  if (again !== undefined) headers['retry-after'] = again;
  return { problem, headers, quotas };
}

function findingOf(error: unknown): Finding {
  if (error instanceof MethodNotAllowedError) {
    return { code: 'method_not_allowed', detail: error.message, headers: { allow: error.allow } };
  }
  if (error instanceof RangeError416) {
    const headers = { 'content-range': `bytes */${error.size}` };
    return { code: 'invalid_request', status: 416, detail: error.message, headers };
  }
  if (error instanceof RemudaError) return fromRemudaError(error);
  if (error instanceof InvalidInputError) return fromViolations(error.code, error.violations);
  if (error instanceof ZodError) return fromViolations('invalid_request', violationsOf(error, undefined));
  return fromFramework(error) ?? { code: 'internal', detail: ERROR_CATALOGUE.internal.sentence };
}

/** What RFC 9110 wants beside 401, and RFC 6750 says about keys. */
function challenge({ code, details }: RemudaError): Record<string, string> | undefined {
  const realm = 'Bearer realm="remuda"';
  if (code === 'unauthorized')
    return { 'www-authenticate': details.given === true ? `${realm}, error="invalid_token"` : realm };
  if (code !== 'forbidden') return undefined;
  return { 'www-authenticate': `${realm}, error="insufficient_scope", scope="${details.scope}"` };
}

function fromRemudaError(error: RemudaError): Finding {
  const { code, message, details } = error;
  const suggestions = Array.isArray(details.suggestions) ? details.suggestions.map(String) : undefined;
  const errors = Array.isArray(details.violations) ? (details.violations as Violation[]) : undefined;
  const told = TOLD.has(code) ? { details } : {};
  return { code, detail: message, suggestions, errors, ...told, headers: challenge(error) };
}

function fromViolations(code: ErrorCode, errors: readonly Violation[]): Finding {
  const shown = errors
    .slice(0, MOST_IN_DETAIL)
    .map(({ path, expected, received }) => `${path || 'body'}: expected ${expected}, received ${received}`);
  const rest = errors.length - shown.length;
  return { code, detail: shown.join('; ') + (rest > 0 ? `; and ${rest} more` : ''), errors };
}

/** The route is there, the method is not. */
export class MethodNotAllowedError extends Error {
  constructor(
    method: string,
    /** Methods that are. */
    readonly allow: string,
  ) {
    super(`${method} is not a method of this route; it takes ${allow}`);
  }
}

/** Fastify's errors, and those of its form parser, by their codes. */
const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_REQ_FILE_TOO_LARGE: 'payload_too_large',
  FST_FILES_LIMIT: 'payload_too_large',
  FST_PARTS_LIMIT: 'payload_too_large',
  FST_FIELDS_LIMIT: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_INVALID_MULTIPART_CONTENT_TYPE: 'unsupported_media_type',
  FST_INVALID_JSON_FIELD_ERROR: 'malformed_json',
  FST_ERR_BAD_URL: 'route_not_found',
};

function fromFramework(error: unknown): Finding | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, statusCode, message } = error as Error & { code?: string; statusCode?: number };
  const known = FRAMEWORK_CODES[code ?? ''];
  if (known) return { code: known, detail: message };
  // The form parser throws plain errors for a body that is no form.
  if (/multipart|boundary|part header/i.test(message))
    return { code: 'invalid_request', detail: `form: ${message}` };
  const isClients = statusCode !== undefined && statusCode >= 400 && statusCode < 500;
  return isClients ? { code: 'invalid_request', detail: message } : undefined;
}

/** undefined: to send the same again will not help. */
function retryAfter(error: unknown): string | undefined {
  const asked = error instanceof RemudaError ? error.details.retry_after_s : undefined;
  if (asked === null) return undefined;
  return String(typeof asked === 'number' ? Math.max(1, Math.ceil(asked)) : RETRY_AFTER_S);
}
