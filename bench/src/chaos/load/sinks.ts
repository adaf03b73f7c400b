/**
 * The sinks of webhooks: HTTP servers on loopback which take what is sent, check its signature, and note which request it
 * was about. They can be told to be slow, to answer 500, to say that they are gone (410), or to break the connection off.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export const SINK_NAMES = ['steady', 'moody', 'gone'] as const;
/** steady is never hurt. moody is slow, broken or rude at times. gone may say 410, so nothing is owed to it. */
export type SinkName = (typeof SINK_NAMES)[number];
export type SinkMode = 'ok' | 'slow' | '500' | '410' | 'reset';

const SLOW_MS = 3_000;

export class Sinks {
  readonly secret = `whsec_${Buffer.from('the secret of the chaos suite!!!').toString('base64')}`;
  readonly #servers = new Map<SinkName, Server>();
  readonly #modes = new Map<SinkName, SinkMode>();
  /** How often each request was told to a sink which answered 2xx, by request id. */
  readonly delivered = new Map<string, number>();
  /** Of all posts: those whose signature was wrong. */
  forged = 0;
  posts = 0;

  async start(): Promise<void> {
    for (const name of SINK_NAMES) {
      const server = createServer((request, response) => void this.#take(name, request, response));
      this.#servers.set(name, server);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    }
  }

  urlOf(name: SinkName): string {
    const { port } = (this.#servers.get(name) as Server).address() as { port: number };
    return `http://127.0.0.1:${port}/hook`;
  }

  set(name: SinkName, mode: SinkMode): void {
    this.#modes.set(name, mode);
  }

  async stop(): Promise<void> {
    for (const server of this.#servers.values()) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  async #take(name: SinkName, request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.posts++;
    const mode = this.#modes.get(name) ?? 'ok';
    if (mode === 'reset') return void request.socket.resetAndDestroy();
    const body = await textOf(request).catch(() => null);
    if (body === null) return;
    if (mode === 'slow') await sleep(SLOW_MS);
    if (mode === '500' || mode === '410') {
      response.writeHead(Number(mode)).end();
      return;
    }
    if (this.#isSigned(request, body)) this.#note(body);
    else this.forged++;
    response.writeHead(204).end();
  }

  #note(body: string): void {
    const id = /"request_id":"([^"]+)"/.exec(body)?.[1];
    if (id !== undefined) this.delivered.set(id, (this.delivered.get(id) ?? 0) + 1);
  }

  /** By the letter of Standard Webhooks 1.0. */
  #isSigned({ headers }: IncomingMessage, body: string): boolean {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const key = Buffer.from(this.secret.slice('whsec_'.length), 'base64');
    const right = createHmac('sha256', key).update(signed).digest();
    return String(headers['webhook-signature'])
      .split(' ')
      .filter((part) => part.startsWith('v1,'))
      .map((part) => Buffer.from(part.slice('v1,'.length), 'base64'))
      .some((given) => given.length === right.length && timingSafeEqual(given, right));
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}
