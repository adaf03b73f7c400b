/** The HTTP API as tests speak to it, and the ledger: every id that was accepted has exactly one terminal record. */
import type { Fleet, InferenceResult, Problem, RequestRecord, RequestStatus } from '@remuda/schemas';
import { isTerminal } from '@remuda/schemas';

export interface Answer<Body> {
  status: number;
  headers: Headers;
  body: Body;
}

/** A record where it was accepted, a problem where not. */
export type SubmitAnswer = RequestRecord & Pick<Problem, 'code' | 'detail' | 'errors'>;

export class Api {
  url = '';
  /** Ids of all requests that were answered with 200 or 202. */
  readonly accepted = new Set<string>();

  async call<Body = unknown>(method: string, path: string, init: RequestInit = {}): Promise<Answer<Body>> {
    const response = await fetch(`${this.url}${path}`, { method, ...init });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson ? JSON.parse(text) : text) as Body,
    };
  }

  get<Body = unknown>(path: string): Promise<Answer<Body>> {
    return this.call<Body>('GET', path);
  }

  post<Body = unknown>(
    path: string,
    body: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<Body>> {
    return this.call<Body>('POST', path, {
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  }

  /** Submits and does not wait; the record or the problem. */
  async submit(model: string, request: unknown): Promise<Answer<SubmitAnswer>> {
    const answer = await this.post<SubmitAnswer>(`/v1/models/${model}/requests`, request);
    if (answer.status < 300) this.accepted.add(answer.body.request_id);
    return answer;
  }

  /** Submits and waits for the result, for as long as the API holds a call. */
  async run(model: string, request: unknown, seconds = 60): Promise<InferenceResult> {
    const answer = await this.post<InferenceResult>(`/v1/models/${model}/requests`, request, {
      prefer: `wait=${seconds}`,
    });
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    this.accepted.add(answer.body.request_id);
    return answer.body;
  }

  /**
   * The same, however often the API lets go of the call: while Redis is slow to answer it tells with 202 that the
   * request goes on.
   */
  async runToEnd(model: string, request: unknown): Promise<InferenceResult> {
    const headers = { prefer: 'wait=60' };
    const answer = await this.post<SubmitAnswer>(`/v1/models/${model}/requests`, request, headers);
    if (answer.status > 202) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    const id = answer.body.request_id;
    this.accepted.add(id);
    if (answer.status === 200) return answer.body as unknown as InferenceResult;
    while (!isTerminal((await this.record(id, 30)).status));
    return this.result(id);
  }

  async record(id: string, waitSeconds = 0): Promise<RequestRecord> {
    const answer = await this.get<RequestRecord>(`/v1/requests/${id}?wait=${waitSeconds}`);
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async result(id: string): Promise<InferenceResult> {
    const answer = await this.get<InferenceResult>(`/v1/requests/${id}/result`);
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async fleet(): Promise<Fleet> {
    return (await this.get<Fleet>('/v1/fleet')).body;
  }

  /**
   * Waits until every accepted request has ended.
   * @throws Error naming those that have not, or are not known any more
   */
  async settle(seconds: number): Promise<Map<string, RequestStatus>> {
    const until = Date.now() + seconds * 1_000;
    const ended = new Map<string, RequestStatus>();
    while (Date.now() < until && ended.size < this.accepted.size) {
      const open = [...this.accepted].filter((id) => !ended.has(id)).slice(0, 20);
      await Promise.all(
        open.map(async (id) => {
          const { status } = await this.record(id, 5).catch(() => ({ status: 'queued' as const }));
          if (isTerminal(status)) ended.set(id, status);
        }),
      );
    }
    const missing = [...this.accepted].filter((id) => !ended.has(id));
    if (missing.length > 0)
      throw new Error(`${missing.length} not ended after ${seconds} s: ${missing.slice(0, 5)}`);
    return ended;
  }
}

/** How many of each status. */
export function tally(statuses: Iterable<RequestStatus>): Partial<Record<RequestStatus, number>> {
  const counts: Partial<Record<RequestStatus, number>> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
