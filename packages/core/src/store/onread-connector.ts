/**
 * How ioredis gets a socket that reads into one buffer, used again for every read. Each piece is offered to `take`;
 * what that leaves goes to ioredis, as a copy.
 */
import { createConnection, type OnReadOpts, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** @returns whether the bytes were taken; they are overwritten by the next read */
export type TakeBytes = (bytes: Uint8Array) => boolean;

/** Of ioredis's options, those that say where to connect to. */
interface Address {
  host?: string;
  port?: number;
  family?: number;
  path?: string;
  tls?: object;
}

const READ_BYTES = 128 * 1024;

/** A class for ioredis's option `Connector`. */
export function onreadConnector(take: TakeBytes): new (options: unknown) => Connector {
  return class extends Connector {
    constructor(options: unknown) {
      super(options as Address, take);
    }
  };
}

/** What ioredis asks of a connector. */
class Connector {
  readonly #address: Address;
  readonly #take: TakeBytes;
  #socket: Socket | undefined;
  #wanted = false;
  /** ioredis reports it where the socket is gone before anything listens to it. */
  firstError: Error | undefined;

  constructor(address: Address, take: TakeBytes) {
    this.#address = address;
    this.#take = take;
  }

  check(): boolean {
    return true;
  }

  async connect(): Promise<Socket> {
    this.#wanted = true;
    // ioredis sets its state before it expects a socket.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    if (!this.#wanted) throw new Error('the connection was closed before it was opened');
    this.#socket = open(this.#address, this.#take);
    this.#socket.once('error', (error) => {
      this.firstError = error;
    });
    return this.#socket;
  }

  disconnect(): void {
    this.#wanted = false;
    // Nothing under way is worth waiting for.
    this.#socket?.destroy();
  }
}

function open({ host, port, family, path, tls }: Address, take: TakeBytes): Socket {
  let socket: Socket | undefined;
  const onread = intoOneBuffer(take, () => socket);
  const options = { ...(path ? { path } : { host, port, family }), ...tls, onread } as TcpNetConnectOpts;
  socket = tls ? (connectTls(options) as Socket) : createConnection(options);
  return socket;
}

/** Node's option `onread`. */
export function intoOneBuffer(take: TakeBytes, socket: () => Socket | undefined): OnReadOpts {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  return {
    buffer,
    callback: (length: number): boolean => {
      const piece = buffer.subarray(0, length);
      if (!take(piece)) socket()?.emit('data', Buffer.from(piece));
      return true;
    },
  };
}
