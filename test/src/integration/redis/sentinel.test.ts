/** Connections behind Sentinels when the master goes: killed, or suspended so that its connections stay open. */
import { PayloadReader } from '@remuda/core/store/payload-reader';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ask, startWatched, until, type Watched } from '../../support/redis-servers.js';

let watched: Watched;
let connections: Redis[];
let reader: PayloadReader;
beforeEach(async () => {
  watched = await startWatched();
  connections = Array.from({ length: 12 }, () =>
    connectRedis({ url: watched.url, role: 'worker', name: 'test', onError() {} }),
  );
  const memory = { acquire: (length: number) => new ArrayBuffer(length), release() {} };
  reader = new PayloadReader({ url: watched.url, name: 'test', memory, onError() {} });
});
afterEach(async () => {
  for (const connection of connections) closeRedis(connection);
  reader.close();
  await watched.stop();
});

const textOf = async (key: string): Promise<string | undefined> => {
  const [payload] = await reader.read([key]);
  return payload ? Buffer.from(payload.bytes).toString() : undefined;
};

/** Every connection writes and reads on the new master, and so does the reader of payloads. */
async function goOnAt(port: number): Promise<void> {
  await expect.poll(() => watched.master()).toBe(port);
  await Promise.all(connections.map((connection, i) => connection.set(`after-${i}`, `value ${i}`)));
  for (const i of connections.keys()) expect(await ask(port, 'GET', `after-${i}`)).toBe(`value ${i}`);
  expect(await textOf('after-3')).toBe('value 3');
}

async function begin(): Promise<[master: number, replica: number]> {
  const [master, replica] = watched.servers.map(({ port }) => port) as [number, number];
  await Promise.all(connections.map((connection) => connection.set('before', 'x')));
  expect(await textOf('before')).toBe('x');
  await until('the replica has it', async () => (await ask(replica, 'GET', 'before')) === 'x');
  return [master, replica];
}

it('a master that is killed: all go on at the new one', async () => {
  const [, replica] = await begin();
  await watched.servers[0]?.kill9();
  await goOnAt(replica);
});

it('a master that hangs: all leave it for the new one', async () => {
  const [, replica] = await begin();
  process.kill(watched.servers[0]?.pid as number, 'SIGSTOP');
  await goOnAt(replica);
});
