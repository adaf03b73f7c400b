/** /livez, /readyz and /metrics of a worker, on a port of its own. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Metrics } from '@remuda/core/observability/metrics';
import type { Health } from '@remuda/schemas';

export interface HealthServerOptions {
  host: string;
  port: number;
  metrics: Metrics;
  live(): Health;
  ready(): Health;
}

export class HealthServer implements Service {
  readonly name = 'health server';
  readonly #options: HealthServerOptions;
  readonly #server: Server;

  constructor(options: HealthServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      void this.#answer(request.url ?? '/', response);
    });
  }

  /** http://host:port once it listens. */
  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}`;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#options.port, this.#options.host, resolve);
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(url: string, response: ServerResponse): Promise<void> {
    const { metrics, live, ready } = this.#options;
    const path = url.split('?')[0];
    if (path === '/livez') return sendHealth(response, live());
    if (path === '/readyz') return sendHealth(response, ready());
    if (path === '/metrics') {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
      return;
    }
    response
      .writeHead(404, { 'content-type': 'text/plain' })
      .end('this port has /livez, /readyz and /metrics\n');
  }
}

function sendHealth(response: ServerResponse, health: Health): void {
  response
    .writeHead(health.status === 'ok' ? 200 : 503, { 'content-type': 'application/json' })
    .end(`${JSON.stringify(health)}\n`);
}
