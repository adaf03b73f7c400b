/** An API of a few lines of node:http, and a command line that talks to it: what is sent, what is shown, how it ends. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readConfig } from './config.js';
import { runProgram } from './program.js';
import { recordingTerminal } from './terminal/recording-terminal.fixture.js';

interface Sent {
  method: string;
  path: string;
  prefer: string | undefined;
  type: string | undefined;
  authorization: string | undefined;
  actor: string | undefined;
  /** Idempotency-Key. */
  onceKey: string | undefined;
  body: string;
}

type Answers = Record<string, { status?: number; body: unknown }>;

/** @param answers by "METHOD /path" */
export async function setup(answers: Answers = {}, env: Record<string, string> = {}) {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    const prefer = headers.prefer as string | undefined;
    const { authorization, 'content-type': type } = headers;
    const actor = headers['remuda-actor'] as string | undefined;
    const onceKey = headers['idempotency-key'] as string | undefined;
    sent.push({ method, path, prefer, type, authorization, actor, onceKey, body: await textOf(request) });
    const { status = 200, body } = answers[`${method} ${path}`] ?? { status: 404, body: 'nothing here' };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // The end of the tests need not wait for it.
  server.unref();
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const terminal = recordingTerminal();
  const run = (args: string[], stdin = '') =>
    runProgram(args, {
      terminal,
      config: () => readConfig({ REMUDA_URL: url, ...env }, import.meta.dirname),
      stdin: (async function* () {
        yield stdin;
      })(),
    });
  return { run, sent, terminal, url, notes: () => terminal.notes.join('\n'), close };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}
