/** /v1/batches and /v1/files in a few lines of node:http: a job that goes the way that the test says, and files. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BulkJob, BulkJobCreate, ModelDetail } from '@remuda/schemas';
import { readConfig } from '../config.js';
import { runProgram } from '../program.js';
import { recordingTerminal } from '../terminal/recording-terminal.fixture.js';
import { modelDetail } from './bulk-answers.fixture.js';

export interface FakeBulk {
  /** What each look at the job shows, the last one for ever. */
  looks: BulkJob[];
  /** Content by id; what is uploaded comes to it. */
  files: Map<string, Buffer>;
  created: BulkJobCreate[];
  /** Calls as "METHOD path", in order. */
  calls: string[];
  /** Ranges that were asked for. */
  ranges: (string | undefined)[];
  /** After how many bytes the next answers of a content break off, and what is waited for before. */
  breaks: { bytes: number; when(): Promise<unknown> }[];
  model: ModelDetail;
  /** Told of each call before it is answered. */
  onCall(call: string): void | Promise<void>;
}

export const UPLOADED = 'file-uploaded0000000001';

export async function fakeBulkApi(looks: BulkJob[], files: Record<string, string> = {}) {
  const fake: FakeBulk = {
    looks,
    files: new Map(Object.entries(files).map(([id, text]) => [id, Buffer.from(text)])),
    created: [],
    calls: [],
    ranges: [],
    breaks: [],
    model: modelDetail,
    onCall: () => {},
  };
  const server = createServer((request, response) => void answer(fake, request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { fake, url };
}

export function commandLine(url: string, cwd: string) {
  const terminal = recordingTerminal();
  const run = (args: string[], stdin = '') =>
    runProgram(args, {
      terminal,
      config: () => readConfig({ REMUDA_URL: url }, cwd),
      stdin: (async function* () {
        yield stdin;
      })(),
    });
  return {
    run,
    terminal,
    notes: () => terminal.notes.join('\n'),
    answers: () => terminal.answers.join('\n'),
  };
}

async function answer(fake: FakeBulk, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '' } = request;
  fake.calls.push(`${method} ${url}`);
  await fake.onCall(`${method} ${url}`);
  const body = await bodyOf(request);
  const json = (status: number, value: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
  const [, content] = /^\/v1\/files\/([^/]+)\/content$/.exec(url) ?? [];
  if (content) return sendContent(fake, content, request, response);
  const [, file] = /^\/v1\/files\/([^/]+)$/.exec(url) ?? [];
  if (file && method === 'DELETE') {
    fake.files.delete(file);
    return json(200, { id: file, object: 'file', deleted: true });
  }
  if (file) return json(200, fileOf(file, fake.files.get(file)?.length ?? 0));
  if (url.startsWith('/v1/models/')) return json(200, fake.model);
  if (method === 'POST' && url === '/v1/files') {
    fake.files.set(UPLOADED, body);
    return json(200, fileOf(UPLOADED, body.length));
  }
  if (method === 'POST' && url === '/v1/batches') fake.created.push(JSON.parse(body.toString()));
  const [look] = fake.looks;
  if (fake.looks.length > 1) fake.looks.shift();
  return json(200, look);
}

function sendContent(fake: FakeBulk, id: string, request: IncomingMessage, response: ServerResponse): void {
  const bytes = fake.files.get(id) ?? Buffer.alloc(0);
  const { range } = request.headers;
  fake.ranges.push(range);
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
  const rest = bytes.subarray(from);
  response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length });
  const cut = fake.breaks.shift();
  if (cut === undefined) response.end(rest);
  else response.write(rest.subarray(0, cut.bytes), () => cut.when().then(() => response.socket?.destroy()));
}

function fileOf(id: string, bytes: number) {
  const facts = { object: 'file', created_at: 1_800_000_000, expires_at: null, status: 'processed' };
  return { id, bytes, filename: 'a.jsonl', purpose: 'batch', ...facts };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
