/** A real HTTP server for the tests of sources: files with ETag and ranges, and the faults that servers have. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  path: string;
  range: string | undefined;
  ifRange: string | undefined;
  authorization: string | undefined;
  status: number;
}

/** What the next answer for a path does instead of being whole. */
export type Fault =
  | { kind: 'break'; afterBytes: number }
  | { kind: 'stall'; afterBytes: number }
  | { kind: 'status'; status: number }
  | { kind: 'redirect'; location: string };

const NO_RANGE = { range: undefined, ifRange: undefined };

export class FileServer {
  readonly files = new Map<string, Buffer>();
  readonly requests: SeenRequest[] = [];
  /** By path; one is used up by each request. */
  readonly faults = new Map<string, Fault[]>();
  /** False: answers every request with the whole file. */
  ranges = true;
  /** False: answers come without an ETag. */
  heedsIfRange = true;
  tellsEtag = true;
  /** False: answers come without a Content-Length. */
  tellsSize = true;
  /** Called when an answer has stalled with its bytes sent. */
  onStall: () => void = () => undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<FileServer> {
    const server = new FileServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  seen(path: string): SeenRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://any').pathname;
    const { range, 'if-range': ifRange, authorization } = request.headers;
    const seen = { path, range, ifRange: ifRange as string | undefined, authorization, status: 0 };
    this.requests.push(seen);
    response.on('close', () => {
      seen.status = response.statusCode;
    });
    const fault = this.faults.get(path)?.shift();
    const file = this.files.get(path);
    if (fault?.kind === 'status') end(response, fault.status);
    else if (fault?.kind === 'redirect') end(response, 302, { location: fault.location });
    else if (file) this.#send(response, file, this.ranges ? seen : NO_RANGE, fault);
    else end(response, 404);
  }

  #send(
    response: ServerResponse,
    file: Buffer,
    { range, ifRange }: Pick<SeenRequest, 'range' | 'ifRange'>,
    fault: Fault | undefined,
  ): void {
    const etag = `"${createHash('sha256').update(file).digest('hex').slice(0, 16)}"`;
    const first = ifRange === undefined || ifRange === etag || !this.heedsIfRange ? firstByte(range) : 0;
    if (first > 0 && first >= file.length) {
      end(response, 416, { 'content-range': `bytes */${file.length}` });
      return;
    }
    const body = file.subarray(first);
    response.writeHead(first > 0 ? 206 : 200, {
      ...(this.tellsEtag ? { etag } : {}),
      ...(this.tellsSize ? { 'content-length': body.length } : {}),
      ...(first > 0 ? { 'content-range': `bytes ${first}-${file.length - 1}/${file.length}` } : {}),
    });
    if (fault?.kind !== 'break' && fault?.kind !== 'stall') {
      response.end(body);
      return;
    }
    response.write(body.subarray(0, fault.afterBytes), () => {
      if (fault.kind === 'break') response.destroy();
      else this.onStall();
    });
  }
}

function firstByte(range: string | undefined): number {
  return Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
}

function end(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers);
  response.end();
}
