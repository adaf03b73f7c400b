/** The proxy in front of an echo. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TcpProxy } from './tcp-proxy.js';

let echo: Server;
let proxy: TcpProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  echo = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  proxy = await TcpProxy.start((echo.address() as { port: number }).port);
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.stop();
  echo.close();
});

async function dial(): Promise<{ socket: Socket; heard(): string }> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes;
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return { socket, heard: () => text };
}

/** However it came to that. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve));
}

it('passes bytes both ways, late where it is told to, and in order', async () => {
  const { socket, heard } = await dial();
  proxy.delay(30);
  for (const part of ['a', 'b', 'c']) socket.write(part);
  await expect.poll(heard).toBe('abc');
  proxy.delay(0);
  socket.write('d');
  await expect.poll(heard).toBe('abcd');
});

it('cuts what is there, refuses what is new, and takes connections again when it is mended', async () => {
  const { socket } = await dial();
  proxy.cut();
  await closed(socket);
  const refused = connect(proxy.port, '127.0.0.1');
  clients.push(refused);
  refused.on('error', () => {});
  await closed(refused);
  proxy.mend();
  const { socket: again, heard } = await dial();
  again.write('here');
  await expect.poll(heard).toBe('here');
});

it('passes nothing while it is silent, breaks no connection, and passes all of it afterwards', async () => {
  const { socket, heard } = await dial();
  socket.write('before');
  await expect.poll(heard).toBe('before');
  proxy.silence();
  socket.write(', meanwhile');
  const { socket: other, heard: otherHeard } = await dial();
  other.write('new');
  // What is passed at all is passed by the time that a connection which is not held has gone to and fro.
  await new Promise((resolve) => socket.write('', resolve));
  expect([heard(), otherHeard()]).toEqual(['before', '']);
  proxy.mend();
  await expect.poll(() => [heard(), otherHeard()]).toEqual(['before, meanwhile', 'new']);
});
