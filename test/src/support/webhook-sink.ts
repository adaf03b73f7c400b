/** A receiver of webhooks: a real HTTP server on loopback that answers as it is told, and keeps what came. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** How a sink answers: the status, or a function that does what it likes with the response. */
export type SinkAnswer = number | ((response: ServerResponse, received: Received) => void);

/** Only bounds a failing test. */
const PATIENCE_MS = 60_000;

export class WebhookSink {
  readonly received: Received[] = [];
  /** Answers that nobody has been given yet. */
  readonly held: ServerResponse[] = [];
  /** Of the calls that have no answer of their own left. Default 200. */
  otherwise: SinkAnswer = 200;
  readonly #answers: SinkAnswer[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const received = { path: request.url ?? '', headers: request.headers, body };
    this.received.push(received);
    this.#answer(response, received);
    for (const look of this.#waiting) look();
  });

  static async start(): Promise<WebhookSink> {
    const sink = new WebhookSink();
    await new Promise<void>((resolve) => sink.#server.listen(0, '127.0.0.1', resolve));
    return sink;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** The next calls are answered like that, one after the other. */
  answer(...answers: SinkAnswer[]): void {
    this.#answers.push(...answers);
  }

  /** Takes the call and says nothing. */
  readonly hold: SinkAnswer = (response) => void this.held.push(response);

  /** Answers all calls that are held, and no more are. */
  release(status = 200): void {
    this.otherwise = status;
    for (const response of this.held.splice(0)) response.writeHead(status).end();
  }

  /** Resolves when that many calls have come. */
  async count(calls: number): Promise<Received[]> {
    if (this.received.length >= calls) return this.received;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${this.received.length} of ${calls} calls came`)),
        PATIENCE_MS,
      );
      const look = (): void => {
        if (this.received.length < calls) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
    return this.received;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(response: ServerResponse, received: Received): void {
    const answer = this.#answers.shift() ?? this.otherwise;
    if (typeof answer === 'number') response.writeHead(answer).end('thanks');
    else answer(response, received);
  }
}
