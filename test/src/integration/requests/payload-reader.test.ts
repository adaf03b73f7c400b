/** The connection that reads payloads, against a real Redis: every form of address, long values, losses, refusals. */
import { BufferPool } from '@remuda/core/inference/buffer-pool';
import type { Payload } from '@remuda/core/store/mget-replies';
import { PayloadReader } from '@remuda/core/store/payload-reader';
import { closeRedis, connectRedis, type Redis } from '@remuda/core/store/redis';
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { afterEach, beforeEach, expect, it } from 'vitest';

const PASSWORD = 'a pass/word';

let server: PrivateRedis;
let redis: Redis;
let pool: BufferPool;
const open: { close(): void }[] = [];
beforeEach(async () => {
  server = await startPrivateRedis({ unixSocket: true });
  redis = connectRedis({ url: server.url, role: 'runner', name: 'test', onError: () => {} });
  pool = new BufferPool();
});
afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  closeRedis(redis);
  await server.stop();
});

function reader(url = server.url, onError: (error: Error) => void = () => {}): PayloadReader {
  const made = new PayloadReader({ url, name: 'payloads', memory: pool, onError });
  open.push(made);
  return made;
}

const bytesOf = (length: number, seed: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 0xff));

/** Compares, and gives the memory back. */
function expectRead(from: PayloadReader, got: (Payload | null)[], expected: (Buffer | null)[]): void {
  expect(got).toHaveLength(expected.length);
  got.forEach((value, i) => {
    if (expected[i] === null) expect(value).toBeNull();
    else expect(Buffer.compare(value?.bytes as Uint8Array, expected[i] as Buffer)).toBe(0);
    from.release(value);
  });
}

it('reads values of any length, absent ones as null, in order, many reads at once', async () => {
  const lengths = [0, 1, 4095, 65_536, 131_072, 131_073, 3_000_000];
  const values = lengths.map(bytesOf);
  await Promise.all(values.map((value, i) => redis.set(`v${i}`, value)));
  const payloads = reader();
  await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const at = n % values.length;
      expectRead(payloads, await payloads.read([`v${at}`, 'absent', `v${(at + 1) % values.length}`]), [
        values[at] as Buffer,
        null,
        values[(at + 1) % values.length] as Buffer,
      ]);
    }),
  );
  expect(pool.stats.heldBytes).toBe(0);
});

it('takes the same addresses as every other connection: socket, password, database', async () => {
  const value = bytesOf(200_000, 1);
  await redis.call('ACL', 'SETUSER', 'reader', 'on', `>${PASSWORD}`, '~*', '+@all');
  await redis.select(3);
  await redis.set('v', value);
  const port = new URL(server.url).port;
  const addresses = [
    `redis://reader:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/3`,
    `unix://${server.socketPath}?db=3`,
  ];
  for (const url of addresses) {
    const payloads = reader(url);
    expectRead(payloads, await payloads.read(['v']), [value]);
  }
});

it('a wrong password is told, and the read waits', async () => {
  await redis.call('ACL', 'SETUSER', 'reader', 'on', `>${PASSWORD}`, '~*', '+@all');
  const port = new URL(server.url).port;
  let settled = false;
  const told = new Promise<Error>((resolve) => {
    const payloads = reader(`redis://reader:wrong@127.0.0.1:${port}`, resolve);
    void payloads.read(['v']).then(
      () => (settled = true),
      () => {},
    );
  });
  expect((await told).message).toContain('WRONGPASS');
  expect(settled).toBe(false);
});

it('a connection that is lost in the middle of a reply is opened again and the read repeated', async () => {
  const value = bytesOf(8_000_000, 2);
  await redis.set('v', value);
  const payloads = reader();
  expectRead(payloads, await payloads.read(['v']), [value]);
  for (let round = 0; round < 5; round++) {
    const reads = Array.from({ length: 8 }, () => payloads.read(['v', 'absent']));
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    for (const read of reads) expectRead(payloads, await read, [value, null]);
  }
  expect(pool.stats.heldBytes).toBe(0);
});

it('a read that Redis refuses is rejected, and the next is answered', async () => {
  await redis.lpush('list', 'x');
  await redis.set('v', 'y');
  await redis.call('ACL', 'SETUSER', 'reader', 'on', 'nopass', '~v', '+@all');
  const payloads = reader(`redis://reader:any@127.0.0.1:${new URL(server.url).port}`);
  await expect(payloads.read(['other'])).rejects.toThrow('NOPERM');
  expectRead(payloads, await payloads.read(['v']), [Buffer.from('y')]);
});

it('reads also where Redis refuses the ping of a new connection, as it does while its disk is full', async () => {
  await redis.set('v', 'y');
  await redis.call('ACL', 'SETUSER', 'reader', 'on', 'nopass', '~v', '+@all', '-ping');
  const payloads = reader(`redis://reader:any@127.0.0.1:${new URL(server.url).port}`);
  expectRead(payloads, await payloads.read(['v']), [Buffer.from('y')]);
});

it('waits for a Redis that is away, and gives up when it is closed', async () => {
  await redis.set('v', 'y');
  const payloads = reader();
  const other = reader();
  expectRead(payloads, await payloads.read(['v']), [Buffer.from('y')]);
  await server.kill9();
  const read = payloads.read(['absent']);
  const given = other.read(['absent']);
  other.close();
  await expect(given).rejects.toThrow('closed');
  await expect(other.read(['v'])).rejects.toThrow('closed');
  await server.restart();
  expectRead(payloads, await read, [null]);
});
