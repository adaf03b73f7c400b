/** Calls that are sent slowly: ended when their time is up, but not a stream while something comes. */
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '@remuda/core/lifecycle/clock';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { limitReceiving } from './receive-timeout.js';

let app: FastifyInstance;
let socket: Socket;
const timers = new Set<() => void>();
const clock: Clock = {
  now: () => 0,
  after(_ms, callback) {
    timers.add(callback);
    return () => timers.delete(callback);
  },
};

/** Sends the head of a call and nothing of its body; the answer comes with the end of the connection. */
async function begin(path: string, stalledMs?: number): Promise<{ answer: Promise<string> }> {
  app = Fastify();
  limitReceiving(app, { clock, ...(stalledMs === undefined ? {} : { stalledMs }) });
  const begun = new Promise<void>((resolve) => {
    app.addHook('onRequest', async () => resolve());
  });
  app.addContentTypeParser('x/y', (_request, payload, done) => {
    text(payload).then((body) => done(null, body), done);
  });
  app.post('/whole', async ({ body }) => body);
  app.post('/stream', { config: { streamsBody: true } }, async ({ body }) => body);
  await app.listen({ port: 0 });
  socket = connect((app.server.address() as AddressInfo).port);
  const fields = ['host: x', 'content-type: x/y', 'content-length: 2', 'connection: close'];
  socket.write([`POST ${path} HTTP/1.1`, ...fields, '', ''].join('\r\n'));
  await Promise.all([begun, once(socket, 'connect')]);
  return { answer: text(socket) };
}

afterEach(async () => {
  socket.destroy();
  await app.close();
  expect(timers.size).toBe(0);
});

it('a body that does not come in time is ended with 408', async () => {
  const { answer } = await begin('/whole');
  expect(timers.size).toBe(1);
  for (const end of timers) end();
  expect(await answer).toMatch(/^HTTP\/1.1 408 /);
});

it('a stream has no such time', async () => {
  const { answer } = await begin('/stream');
  expect(timers.size).toBe(0);
  socket.write('ok');
  expect(await answer).toMatch(/^HTTP\/1.1 200 [\s\S]*ok$/);
});

it('a stream that stands still is ended with 408', async () => {
  const { answer } = await begin('/stream', 1);
  expect(await answer).toMatch(/^HTTP\/1.1 408 /);
});
