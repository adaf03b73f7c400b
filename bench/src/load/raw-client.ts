/**
 * A client of HTTP/1.1 that costs as little as one can: requests are bytes made beforehand, one at a time on each
 * keep-alive connection, and of an answer only its status and its body are looked at. On few cores what the client
 * takes is taken from the server that is measured.
 */
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Head as it came, in small letters. */
  head: string;
  body: string;
}

type Done = (answer: RawAnswer | null) => void;

const HEAD_END = Buffer.from('\r\n\r\n');

/** The bytes of one request. */
export function rawRequest(
  url: URL,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-length: ${body.length}\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

export class RawClient {
  readonly #url: URL;
  readonly #most: number;
  readonly #free: RawConnection[] = [];
  readonly #all = new Set<RawConnection>();

  /** @param most connections; what would need more is not sent */
  constructor(url: string, most: number) {
    this.#url = new URL(url);
    this.#most = most;
  }

  get connections(): number {
    return this.#all.size;
  }

  /** Sends at once. `done` is called with the answer, or with null where the connection was lost. False: not sent. */
  send(bytes: Buffer, done: Done): boolean {
    const connection = this.#free.pop() ?? this.#open();
    if (!connection) return false;
    connection.send(bytes, (answer) => {
      if (answer && !connection.closed) this.#free.push(connection);
      else this.#all.delete(connection);
      done(answer);
    });
    return true;
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }

  #open(): RawConnection | undefined {
    if (this.#all.size >= this.#most) return undefined;
    const connection = new RawConnection(connect(Number(this.#url.port), this.#url.hostname));
    this.#all.add(connection);
    return connection;
  }
}

class RawConnection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #done: Done | undefined;
  closed = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#answer(null);
    });
  }

  send(bytes: Buffer, done: Done): void {
    this.#done = done;
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const end = this.#received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#received.toString('latin1', 0, end).toLowerCase();
    const status = Number(head.slice(9, 12));
    const from = end + HEAD_END.length;
    const length = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
    if (this.#received.length < from + length) return;
    const body = this.#received.toString('utf8', from, from + length);
    this.#received = Buffer.alloc(0);
    if (/\r\nconnection: close/.test(head)) this.closed = true;
    this.#answer({ status, head, body });
  }

  #answer(answer: RawAnswer | null): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(answer);
  }
}
