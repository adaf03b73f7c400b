/**
 * A connection that reads payloads and nothing else. ioredis opens it (address, TLS, password, database, reconnecting)
 * and steps aside: bytes of replies go from one reused buffer straight to memory of the caller's. Through ioredis each
 * payload lies in fresh memory twice, which costs more in garbage collection than in copying.
 *
 * Invariant: reads are answered in order; those under way when the connection is lost are sent again.
 */
import { MgetReplies, type MgetReply, type Payload, type PayloadMemory } from './mget-replies.js';
import { closeRedis, connectRedis, type Redis } from './redis.js';

export interface PayloadReaderOptions {
  /** As for connectRedis. */
  url: string;
  name: string;
  memory: PayloadMemory;
  onError(error: Error): void;
}

interface Read {
  command: string;
  settle(reply: MgetReply): void;
}

export class PayloadReader {
  readonly #options: PayloadReaderOptions;
  readonly #redis: Redis;
  readonly #replies: MgetReplies;
  #unanswered: Read[] = [];
  /** The connection is ours: what comes is a reply to a read. */
  #open = false;
  #closed = false;

  constructor(options: PayloadReaderOptions) {
    this.#options = options;
    this.#replies = new MgetReplies(options.memory, (reply) => this.#unanswered.shift()?.settle(reply));
    this.#redis = connectRedis({
      ...options,
      role: 'payloads',
      onBytes: (bytes) => this.#take(bytes),
    });
    this.#redis.on('ready', () => void this.#takeOver());
    this.#redis.on('close', () => {
      this.#open = false;
      this.#replies.reset();
    });
  }

  /**
   * The value under each key, null where there is none. Each value's memory is the caller's to release.
   * Waits while Redis is away. @throws Error when Redis refuses, or after close
   */
  read(keys: readonly string[]): Promise<(Payload | null)[]> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new Error('the connection is closed'));
        return;
      }
      const settle = (reply: MgetReply): void => (reply instanceof Error ? reject(reply) : resolve(reply));
      const command = mget(keys);
      this.#unanswered.push({ command, settle });
      if (this.#open) this.#redis.stream.write(command);
    });
  }

  /** Gives back what was read and is not wanted. */
  release(payload: Payload | null): void {
    if (payload?.memory) this.#options.memory.release(payload.memory);
  }

  close(): void {
    this.#closed = true;
    this.#open = false;
    closeRedis(this.#redis);
    this.#replies.reset();
    for (const { settle } of this.#unanswered.splice(0)) settle(new Error('the connection is closed'));
  }

  /**
   * Once this ping is answered ioredis waits for nothing more, and sends nothing more by itself. A refusal is an answer
   * too: Redis gives one (MISCONF) while it cannot write its file, and this connection would never be opened again.
   */
  async #takeOver(): Promise<void> {
    const { stream } = this.#redis;
    await this.#redis.ping().catch(() => {});
    if (this.#closed || this.#redis.stream !== stream || stream.destroyed) return;
    this.#open = true;
    for (const { command } of this.#unanswered) stream.write(command);
  }

  /** False: it is for ioredis. */
  #take(bytes: Uint8Array): boolean {
    if (!this.#open) return false;
    try {
      this.#replies.take(bytes);
    } catch (error) {
      this.#open = false;
      this.#redis.stream.destroy(error as Error);
    }
    return true;
  }
}

function mget(keys: readonly string[]): string {
  const parts = ['MGET', ...keys].map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${parts.length}\r\n${parts.join('')}`;
}
