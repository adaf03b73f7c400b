/**
 * A TCP proxy between one process of the fleet and Redis, which can be told to hurt: to pass everything late, to cut
 * its connections and take no new ones, to pass nothing at all. Bytes are never changed nor put out of order.
 */
import { createServer, connect as dial, type Server, type Socket } from 'node:net';

/** One direction of one connection. */
interface Flow {
  from: Socket;
  to: Socket;
  waiting: { bytes: Buffer; dueAt: number }[];
  timer: NodeJS.Timeout | undefined;
}

export class TcpProxy {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #flows = new Set<Flow>();
  #delayMs = 0;
  #refusing = false;
  #silent = false;
  #port = 0;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((near) => this.#accept(near));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen({ port: 0, host: '127.0.0.1' }, resolve);
    });
    proxy.#port = (proxy.#server.address() as { port: number }).port;
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** Passes each piece so much later, both ways; 0: at once. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Breaks all connections, with whatever they carry, and takes no new ones until `mend`. */
  cut(): void {
    this.#refusing = true;
    for (const { from, to } of this.#flows) {
      from.resetAndDestroy();
      to.resetAndDestroy();
    }
  }

  /** Passes nothing until `mend`; what comes meanwhile is passed then. */
  silence(): void {
    this.#silent = true;
    for (const flow of this.#flows) flow.from.pause();
  }

  mend(): void {
    this.#refusing = false;
    this.#delayMs = 0;
    this.#silent = false;
    for (const flow of this.#flows) {
      flow.from.resume();
      this.#pass(flow);
    }
  }

  async stop(): Promise<void> {
    for (const { from, timer } of this.#flows) {
      clearTimeout(timer);
      from.destroy();
    }
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket): void {
    if (this.#refusing) {
      near.resetAndDestroy();
      return;
    }
    const far = dial({ port: this.#targetPort, host: '127.0.0.1' });
    near.setNoDelay(true);
    far.setNoDelay(true);
    this.#join(near, far);
    this.#join(far, near);
  }

  #join(from: Socket, to: Socket): void {
    const flow: Flow = { from, to, waiting: [], timer: undefined };
    this.#flows.add(flow);
    if (this.#silent) from.pause();
    from.on('data', (bytes: Buffer) => {
      if (this.#silent) from.pause();
      flow.waiting.push({ bytes, dueAt: Date.now() + this.#delayMs });
      this.#pass(flow);
    });
    from.on('error', () => {});
    from.on('close', () => {
      clearTimeout(flow.timer);
      this.#flows.delete(flow);
      to.destroy();
    });
  }

  #pass(flow: Flow): void {
    clearTimeout(flow.timer);
    flow.timer = undefined;
    if (this.#silent) return;
    const now = Date.now();
    while (flow.waiting[0] && (flow.waiting[0].dueAt <= now || this.#delayMs === 0))
      flow.to.write((flow.waiting.shift() as { bytes: Buffer }).bytes);
    const next = flow.waiting[0];
    if (next) flow.timer = setTimeout(() => this.#pass(flow), next.dueAt - now);
  }
}
