/**
 * The HTTP API as this CLI uses it. Answers are parsed by the schemas of packages/schemas; whatever else comes back is
 * an error that says what to do: a Problem of the API (problem-text.ts), or that no API answers at the address.
 */
import {
  AdminModel,
  AdminModelList,
  type AdminModelSummary,
  Fleet,
  Health,
  InferenceResult,
  isTerminal,
  LIMITS,
  ModelDetail,
  ModelEdited,
  type ModelEvent,
  ModelHistory,
  ModelSummary,
  Problem,
  RequestRecord,
} from '@remuda/schemas';
import * as z from 'zod';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { problemText } from './problem-text.js';

export interface Answer {
  status: number;
  body: unknown;
  /** Seconds, as Retry-After says. */
  retryAfterS?: number;
}

/** A body and what has to be said about it. */
export interface RequestBody {
  body: NonNullable<RequestInit['body']>;
  /** A form's content type is set by fetch, with its boundary. */
  headers?: Record<string, string>;
}

/** The API answered, with a problem. */
export class ProblemError extends CliError {
  constructor(
    readonly status: number,
    readonly problem: Problem,
    /** When to come back, where the API says so. */
    readonly retryAfterS?: number,
  ) {
    super(problemText(problem));
  }
}

/** Nothing answers, or the connection broke before the answer was there. */
export class UnreachableError extends CliError {
  constructor(url: string, cause: unknown) {
    super(
      `No API answers at ${url} (${networkReason(cause)}).\n${remedy(networkReason(cause))}`,
      EXIT.unreachable,
      { cause },
    );
  }
}

export interface AdminCall {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
}

/** One edit of the desired state. */
export interface ModelEdit extends AdminCall {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
}

export interface ApiClientOptions {
  /** The API key that is sent with each call; undefined: none. */
  key: string | undefined;
  /** Ends every call that is under way. */
  stop?: AbortSignal;
}

export function adminPath(model: string): string {
  return `/v1/admin/models/${encodeURIComponent(model)}`;
}

/** Added to the seconds that the API is asked to hold an answer. */
const ANSWER_TIMEOUT_MS = 30_000;
const ModelList = z.strictObject({ models: z.array(ModelSummary) });

export class ApiClient {
  readonly #key: string | undefined;
  /** Ends every call that is under way. */
  readonly stop?: AbortSignal | undefined;

  constructor(
    readonly url: string,
    { key, stop }: ApiClientOptions,
  ) {
    // What cannot be sent is told here: the error of fetch would show it.
    if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
      throw new CliError('The API key holds characters that no key has (REMUDA_API_KEY, --key).', EXIT.usage);
    }
    this.#key = key;
    this.stop = stop;
  }

  /** One call of the admin API, and its answer. @param actor who makes it, for the logs */
  async admin<Schema extends z.ZodType>(
    { method, path, body }: AdminCall,
    schema: Schema,
    actor?: string,
  ): Promise<z.output<Schema>> {
    const answer = await this.#call(method, path, {
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(actor === undefined ? {} : { 'remuda-actor': actor }),
      },
    });
    return this.#parse(schema, answer);
  }

  /**
   * Sends a request; the result when it ended within `waitSeconds`, else its record.
   * @param onceKey Idempotency-Key, printable ASCII
   */
  async submit(
    model: string,
    { body, headers }: RequestBody,
    waitSeconds: number,
    onceKey?: string,
  ): Promise<InferenceResult | RequestRecord> {
    const wait = Math.min(waitSeconds, LIMITS.waitSeconds);
    const answer = await this.#call('POST', `/v1/models/${encodeURIComponent(model)}/requests`, {
      body,
      headers: {
        ...headers,
        ...(wait > 0 ? { prefer: `wait=${wait}` } : {}),
        ...(onceKey === undefined ? {} : { 'idempotency-key': quoted(onceKey) }),
      },
      holdMs: wait * 1_000,
    });
    return this.#resultOrRecord(answer);
  }

  /** The record, held until the request has ended or the seconds are over. */
  async record(id: string, waitSeconds = 0): Promise<RequestRecord> {
    const until = Date.now() + waitSeconds * 1_000;
    for (;;) {
      const wait = Math.min(LIMITS.waitSeconds, Math.max(0, Math.ceil((until - Date.now()) / 1_000)));
      const query = wait > 0 ? `?wait=${wait}` : '';
      const path = `/v1/requests/${encodeURIComponent(id)}${query}`;
      const record = this.#parse(RequestRecord, await this.#call('GET', path, { holdMs: wait * 1_000 }));
      if (isTerminal(record.status) || wait === 0) return record;
    }
  }

  /** The result; the record while the request has not ended. */
  async result(id: string): Promise<InferenceResult | RequestRecord> {
    return this.#resultOrRecord(await this.#call('GET', `/v1/requests/${encodeURIComponent(id)}/result`));
  }

  async models(): Promise<ModelSummary[]> {
    return this.#parse(ModelList, await this.#call('GET', '/v1/models')).models;
  }

  async model(name: string): Promise<ModelDetail> {
    return this.#parse(ModelDetail, await this.#call('GET', `/v1/models/${encodeURIComponent(name)}`));
  }

  async fleet(): Promise<Fleet> {
    return this.#parse(Fleet, await this.#call('GET', '/v1/fleet'));
  }

  async adminModels(): Promise<AdminModelSummary[]> {
    return this.#parse(AdminModelList, await this.#call('GET', '/v1/admin/models')).models;
  }

  async adminModel(name: string): Promise<AdminModel> {
    return this.#parse(AdminModel, await this.#call('GET', adminPath(name)));
  }

  /** Newest first. */
  async history(name: string, limit: number): Promise<ModelEvent[]> {
    const path = `${adminPath(name)}/history?limit=${limit}`;
    return this.#parse(ModelHistory, await this.#call('GET', path)).events;
  }

  /** @param actor who makes it, for the history */
  editModel(edit: ModelEdit, actor: string): Promise<ModelEdited> {
    return this.admin(edit, ModelEdited, actor);
  }

  /** Any other call: its answer by its schema. @param body sent as JSON @param onceKey Idempotency-Key, printable ASCII */
  async ask<Schema extends z.ZodType>(
    schema: Schema,
    method: string,
    path: string,
    body?: unknown,
    onceKey?: string,
  ): Promise<z.output<Schema>> {
    const once: Record<string, string> = onceKey === undefined ? {} : { 'idempotency-key': quoted(onceKey) };
    const json = { body: JSON.stringify(body), headers: { ...once, 'content-type': 'application/json' } };
    return this.#parse(schema, await this.#call(method, path, body === undefined ? {} : json));
  }

  /** Sends a stream, for as long as that takes. */
  async send<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    { contentType, content }: { contentType: string; content: AsyncIterable<Uint8Array> },
  ): Promise<z.output<Schema>> {
    const body = content as unknown as RequestInit['body'];
    const response = await this.#open('POST', path, { body, headers: { 'content-type': contentType } });
    return this.#parse(schema, await this.#checked(response));
  }

  /** An answer that is read as a stream. */
  async download(path: string, headers: Record<string, string>): Promise<Response> {
    const response = await this.#open('GET', path, { headers });
    if (response.status >= 400) await this.#checked(response);
    return response;
  }

  /** /readyz says the same whether it is ready (200) or not (503). */
  async ready(timeoutMs: number): Promise<Health> {
    const answer = await this.#fetch('GET', '/readyz', { timeoutMs });
    return this.#parse(Health, answer);
  }

  async #call(
    method: string,
    path: string,
    { holdMs = 0, ...init }: Partial<RequestBody> & { holdMs?: number } = {},
  ): Promise<Answer> {
    return this.#good(await this.#fetch(method, path, { ...init, timeoutMs: holdMs + ANSWER_TIMEOUT_MS }));
  }

  async #checked(response: Response): Promise<Answer> {
    return this.#good(await answerOf(response));
  }

  #good(answer: Answer): Answer {
    if (answer.status < 400) return answer;
    const problem = Problem.safeParse(answer.body);
    if (problem.success) throw new ProblemError(answer.status, problem.data, answer.retryAfterS);
    throw this.#unexpected(answer, 'which is no problem document of Remuda');
  }

  async #fetch(
    method: string,
    path: string,
    { body, headers, timeoutMs }: Partial<RequestBody> & { timeoutMs: number },
  ): Promise<Answer> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = this.stop ? AbortSignal.any([this.stop, timeout]) : timeout;
    const response = await this.#open(method, path, { body, headers, signal });
    try {
      return await answerOf(response);
    } catch (error) {
      throw new UnreachableError(this.url, error);
    }
  }

  async #open(method: string, path: string, { headers, ...init }: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.url}${path}`, {
        method,
        signal: this.stop,
        ...init,
        headers: {
          ...(headers as Record<string, string> | undefined),
          ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
        },
        // What fetch asks for where a body is a stream.
        duplex: 'half',
      } as RequestInit);
    } catch (error) {
      throw new UnreachableError(this.url, error);
    }
  }

  #resultOrRecord(answer: Answer): InferenceResult | RequestRecord {
    return answer.status === 202 ? this.#parse(RequestRecord, answer) : this.#parse(InferenceResult, answer);
  }

  #parse<Schema extends z.ZodType>(schema: Schema, answer: Answer): z.output<Schema> {
    const parsed = schema.safeParse(answer.body);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw this.#unexpected(answer, `which differs at "${issue?.path.join('.')}": ${issue?.message}`);
  }

  #unexpected({ status, body }: Answer, how: string): CliError {
    const shown = typeof body === 'string' ? body.trim().slice(0, 200) : '';
    return new CliError(
      `${this.url} answered ${status}, ${how}. Is it the API of a Remuda of this version?${shown && `\n  ${shown}`}`,
    );
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const answer = { status: response.status, body: bodyOf(await response.text()) };
  return { ...answer, ...retryAfterOf(response) };
}

/** A string as structured fields write it. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Whether it has ended, and this is its result. */
export function isResult(answer: InferenceResult | RequestRecord): answer is InferenceResult {
  return 'outputs' in answer;
}

/** Seconds; the other form of the field, a date, is not what Remuda sends. */
function retryAfterOf({ headers }: Response): Pick<Answer, 'retryAfterS'> {
  const text = headers.get('retry-after');
  return text !== null && /^\d+$/.test(text) ? { retryAfterS: Number(text) } : {};
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** fetch keeps the reason in the cause, and several of them where a name has several addresses. */
function remedy(reason: string): string {
  return /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(reason)
    ? 'Its certificate is not trusted here: NODE_EXTRA_CA_CERTS names the file of an authority of your own.'
    : 'Start one with `remuda up` (npm start), or give the address of another with --url or REMUDA_URL.';
}

function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'no answer in time';
  const cause = error.cause as (Error & { code?: string; errors?: Error[] }) | undefined;
  return cause?.code ?? cause?.errors?.[0]?.message ?? cause?.message ?? error.message;
}
