/** HTTP calls to the API processes as a client makes them that may lose its server at any time. */
import { Agent, request } from 'undici';
import type { ProcessSlot } from '../fleet/process-slot.js';

export interface Answer {
  status: number;
  body: unknown;
}

export interface CallOptions {
  body?: unknown;
  headers?: Record<string, string>;
}

/** A client gives up on a server that does not answer: it may stand still. */
const PATIENCE_MS = 8_000;

export class ApiClient {
  readonly #agent = new Agent({
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    connect: { timeout: 2_000 },
    connections: 64,
  });

  /** null: no answer, so nobody knows whether it was heard. */
  async call(
    slot: ProcessSlot,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { body, headers = {} }: CallOptions = {},
  ): Promise<Answer | null> {
    if (slot.url === '') return null;
    try {
      const response = await request(`${slot.url}${path}`, {
        dispatcher: this.#agent,
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.body.text();
      return { status: response.statusCode, body: text === '' ? {} : JSON.parse(text) };
    } catch {
      return null;
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
