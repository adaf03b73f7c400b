/**
 * A real S3-compatible server for the tests of sources, and before it a wire that can be cut: the SDK speaks to the
 * wire, so that a break in the middle of an object is one of the connection.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';

interface S3rver {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
}
// The package has no types of its own.
const S3rverClass = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver;

export const BUCKET = 'models';
/** The server's fixed key pair. */
export const CREDENTIALS = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };

export class S3Server {
  readonly #s3: S3rver;
  readonly #folder: string;
  readonly #wire: Server;
  readonly #client: S3Client;
  readonly #cuts: Array<{ bytes: number; onStall?: () => void }> = [];
  /** The first lines of the requests, and their Range headers, in the order in which they came. */
  readonly requests: Array<{ line: string; range: string | undefined }> = [];

  private constructor(s3: S3rver, folder: string, port: number) {
    this.#s3 = s3;
    this.#folder = folder;
    this.#wire = createServer((near) => this.#join(near, port));
    this.#client = new S3Client({
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: CREDENTIALS,
      requestChecksumCalculation: 'WHEN_REQUIRED',
    });
  }

  static async start(): Promise<S3Server> {
    const folder = await mkdtemp(join(tmpdir(), 'remuda-s3-'));
    const s3 = new S3rverClass({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: folder,
      configureBuckets: [{ name: BUCKET }],
    });
    const { port } = await s3.run();
    const server = new S3Server(s3, folder, port);
    await new Promise<void>((resolve) => server.#wire.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#wire.address() as AddressInfo).port}`;
  }

  async put(key: string, body: string | Buffer): Promise<void> {
    await this.#client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }));
  }

  /** Cuts the connection of the next long answer after so many bytes of it. */
  cutAfter(bytes: number): void {
    this.#cuts.push({ bytes });
  }

  /** Lets the next long answer stand still after so many bytes of it. */
  stallAfter(bytes: number, onStall: () => void): void {
    this.#cuts.push({ bytes, onStall });
  }

  async stop(): Promise<void> {
    this.#client.destroy();
    await new Promise((resolve) => this.#wire.close(resolve));
    await this.#s3.close();
    await rm(this.#folder, { recursive: true });
  }

  #join(near: ReturnType<typeof connect>, port: number): void {
    const far = connect(port, '127.0.0.1');
    let sent = 0;
    near.on('data', (bytes) => {
      const head = bytes.toString('latin1');
      const line = head.slice(0, head.indexOf('\r\n'));
      this.requests.push({ line, range: /\r\nrange: (.*)\r\n/i.exec(head)?.[1] });
      sent = 0;
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      sent += bytes.length;
      const cut = this.#cuts[0];
      near.write(bytes);
      if (cut === undefined || sent < cut.bytes) return;
      this.#cuts.shift();
      if (cut.onStall) {
        far.pause();
        cut.onStall();
        return;
      }
      // Ended, not destroyed: what was sent arrives, and is too short.
      near.end();
      far.destroy();
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.end());
    }
  }
}
