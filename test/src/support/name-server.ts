/** A name server of a few lines: it answers questions for A and AAAA over UDP on loopback, or keeps quiet. */
import { createSocket, type Socket } from 'node:dgram';

const TYPES: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' };
const NAME_BEHIND_HEADER = Buffer.from([0xc0, 12]);

/** Bytes of an address, 4 or 16; null: no answer comes. */
export type NameAnswer = (type: 'A' | 'AAAA', name: string) => number[][] | null;

export class NameServer {
  readonly #socket: Socket;
  /** Questions that came, as "A name". */
  readonly asked: string[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async start(answer: NameAnswer): Promise<NameServer> {
    const socket = createSocket('udp4');
    const server = new NameServer(socket);
    socket.on('message', (question, { port, address }) => {
      const reply = server.#reply(question, answer);
      if (reply) socket.send(reply, port, address);
    });
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#socket.close(() => resolve()));
  }

  #reply(question: Buffer, answer: NameAnswer): Buffer | undefined {
    const { name, end } = nameOf(question);
    const type = TYPES[question.readUInt16BE(end)];
    if (!type) return undefined;
    this.asked.push(`${type} ${name}`);
    const addresses = answer(type, name);
    if (!addresses) return undefined;
    const header = Buffer.alloc(12);
    question.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(addresses.length, 6);
    const records = addresses.map((bytes) => recordOf(question.readUInt16BE(end), bytes));
    return Buffer.concat([header, question.subarray(12, end + 4), ...records]);
  }
}

function nameOf(question: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function recordOf(type: number, bytes: number[]): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(60, 4);
  fixed.writeUInt16BE(bytes.length, 8);
  return Buffer.concat([NAME_BEHIND_HEADER, fixed, Buffer.from(bytes)]);
}
