/**
 * A TCP proxy before Redis that stops at a chosen command: what a process sends from there on does not arrive. So a
 * process can be killed, or cut off, exactly between two of its steps, however fast or slow the machine is.
 */
import { createServer, connect as dial, type Server, type Socket } from 'node:net';

/** Longest text that is looked for. */
const TAIL = 64;

export class RedisGate {
  url = '';
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #marker: string | undefined;
  #reached: (() => void) | undefined;

  static async before(redisUrl: string): Promise<RedisGate> {
    const gate = new RedisGate(redisUrl);
    const server = createServer((client) => gate.#join(client));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    gate.#server = server;
    gate.url = `redis://127.0.0.1:${(server.address() as { port: number }).port}`;
    return gate;
  }

  private constructor(redisUrl: string) {
    this.#target = new URL(redisUrl);
  }

  /** Resolves when a command with that text has come; neither it nor what follows it goes on to Redis. */
  holdAt(marker: string): Promise<void> {
    this.#marker = marker;
    return new Promise((resolve) => {
      this.#reached = resolve;
    });
  }

  /** Breaks every connection; what was held is lost. New ones pass. */
  cut(): void {
    this.#marker = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  #join(client: Socket): void {
    const server = dial(Number(this.#target.port), this.#target.hostname);
    let tail = '';
    let held = false;
    client.on('data', (chunk) => {
      const text = tail + chunk.toString('latin1');
      if (this.#marker !== undefined && text.includes(this.#marker)) {
        held = true;
        this.#reached?.();
      }
      if (!held) server.write(chunk);
      tail = text.slice(-TAIL);
    });
    server.on('data', (chunk) => client.write(chunk));
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
