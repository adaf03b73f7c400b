import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { processStarted } from '../setup/process-lock.mjs';
import { deleteKeysContaining, ensureRedis, startPrivateRedis } from './redis-launcher.js';
import { askRedis, parseRedisUrl } from './redis-probe.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function tempDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-launcher-test-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A launcher call with REDIS_URL out of the way; what it logs and starts is collected. */
async function launch(dataDir: string, options: Partial<Parameters<typeof ensureRedis>[0]> = {}) {
  const lines: string[] = [];
  const redis = await ensureRedis({
    env: { PATH: process.env.PATH },
    dataDir,
    log: (line) => lines.push(line),
    allowInstall: false,
    ...options,
  });
  cleanups.push(() => redis.stop());
  return { redis, lines };
}

async function privateRedis(options: Parameters<typeof startPrivateRedis>[0] = {}) {
  const redis = await startPrivateRedis(options);
  cleanups.push(() => redis.stop());
  return redis;
}

async function ask(url: string, ...command: string[]) {
  const [reply] = await askRedis(parseRedisUrl(url), [command], 30_000);
  return reply;
}

/** Nobody listens there, and no port of it is ever given to somebody who asks for any. */
const UNUSED_PORT = 1;

/** Between the stop of a server and the next start somebody else may be given its port. */
const PORT_MAY_BE_TAKEN = { retry: 3 };

describe('a local Redis', () => {
  it('listens on loopback only, keeps an append-only file and evicts nothing', async () => {
    const { redis } = await launch(tempDir());
    expect(redis).toMatchObject({ owned: true, version: expect.stringMatching(/^\d+\.\d+/) });
    const setting = async (name: string) => ((await ask(redis.url, 'CONFIG', 'GET', name)) as string[])[1];
    expect(await setting('bind')).toBe('127.0.0.1');
    expect(await setting('appendonly')).toBe('yes');
    expect(await setting('appendfsync')).toBe('everysec');
    expect(await setting('maxmemory-policy')).toBe('noeviction');
    expect(await setting('save')).toBe('');
  });

  it('is gone after stop, and a second stop does nothing', async () => {
    const { redis } = await launch(tempDir());
    await Promise.all([redis.stop(), redis.stop()]);
    await redis.stop();
    expect(processStarted(redis.pid ?? 0)).toBeUndefined();
  });

  it('takes the same port again and finds its data', PORT_MAY_BE_TAKEN, async () => {
    const dataDir = tempDir();
    const first = await launch(dataDir);
    await ask(first.redis.url, 'SET', 'kept', 'yes');
    await first.redis.stop();
    const second = await launch(dataDir);
    expect(second.redis.url).toBe(first.redis.url);
    expect(await ask(second.redis.url, 'GET', 'kept')).toBe('yes');
  });

  it('takes another port when its old one is in use', PORT_MAY_BE_TAKEN, async () => {
    const dataDir = tempDir();
    const first = await launch(dataDir);
    const port = Number(new URL(first.redis.url).port);
    await first.redis.stop();
    const intruder = createServer().listen(port, '127.0.0.1');
    await once(intruder, 'listening');
    cleanups.push(() => intruder.close());
    const second = await launch(dataDir);
    expect(second.redis.url).not.toBe(first.redis.url);
  });

  it('is shared by a second start on the same folder, which does not own it', async () => {
    const dataDir = tempDir();
    const [one, two] = await Promise.all([launch(dataDir), launch(dataDir)]);
    expect(one.redis.pid).toBe(two.redis.pid);
    expect([one.redis.owned, two.redis.owned].sort()).toEqual([false, true]);
    const guest = one.redis.owned ? two : one;
    await guest.redis.stop();
    expect(await ask(one.redis.url, 'PING')).toBe('PONG');
  });

  it('is taken over by the next start when its owner was killed hard', async () => {
    const dataDir = tempDir();
    const orphan = await orphanedRedis(dataDir);
    const { redis, lines } = await launch(dataDir);
    expect(redis).toMatchObject({ owned: true, pid: orphan });
    expect(lines.join()).toContain('taking over');
    await redis.stop();
    expect(processStarted(orphan)).toBeUndefined();
  });

  it('is replaced when its owner was killed hard and it no longer answers', async () => {
    const dataDir = tempDir();
    const orphan = await orphanedRedis(dataDir);
    process.kill(orphan, 'SIGSTOP');
    const { redis } = await launch(dataDir);
    expect(redis.owned).toBe(true);
    expect(redis.pid).not.toBe(orphan);
    expect(processStarted(orphan)).toBeUndefined();
  });

  it('gives what the server said when it cannot start', async () => {
    const dataDir = tempDir();
    const first = await launch(dataDir);
    await first.redis.stop();
    const manifest = join(dataDir, 'appendonlydir', 'appendonly.aof.manifest');
    expect(existsSync(manifest)).toBe(true);
    writeFileSync(manifest, 'not a manifest\n');
    await expect(launch(dataDir)).rejects.toThrow(/did not start on port \d+[\s\S]*AOF/i);
  });

  it('offers a Unix socket when asked', async () => {
    const { redis } = await launch(tempDir(), { unixSocket: true });
    expect(await ask(`unix://${redis.socketPath}`, 'PING')).toBe('PONG');
  });
});

describe('without a server', () => {
  it('names what was tried and the command for each system', async () => {
    const attempt = ensureRedis({
      env: { PATH: '' },
      dataDir: tempDir(),
      log: () => {},
      allowInstall: false,
    });
    const message = await attempt.then(
      () => 'started',
      (error: Error) => error.message,
    );
    expect(message).toMatch(/REDIS_URL +not set/);
    expect(message).toMatch(/on the PATH +not there/);
    expect(message).toContain('sudo apt-get install -y redis-server');
    expect(message).toContain('brew install redis');
    expect(message).toContain('docker run');
  });
});

describe('REDIS_URL', () => {
  it('is used as it is and never stopped', async () => {
    const theirs = await privateRedis();
    const { redis } = await launch(tempDir(), { env: { REDIS_URL: `${theirs.url}/3`, PATH: '' } });
    expect(redis).toMatchObject({ url: `${theirs.url}/3`, owned: false, version: theirs.version });
    await redis.stop();
    expect(await ask(theirs.url, 'PING')).toBe('PONG');
  });

  it('fails with what was tried when nothing answers, without showing the password', async () => {
    const REDIS_URL = `redis://me:secret@127.0.0.1:${UNUSED_PORT}`;
    const attempt = launch(tempDir(), { env: { REDIS_URL }, connectTimeoutMs: 2_000 });
    await expect(attempt).rejects.toThrow(
      /REDIS_URL is redis:\/\/\*\*\*@127.*PING was tried for 2 s: .*ECONNREFUSED/,
    );
    await expect(attempt).rejects.not.toThrow(/secret/);
  });

  it('says so at once when the server wants a password', async () => {
    const theirs = await privateRedis();
    await ask(theirs.url, 'CONFIG', 'SET', 'requirepass', 'sesame');
    await expect(launch(tempDir(), { env: { REDIS_URL: theirs.url } })).rejects.toThrow(/answered: NOAUTH/);
    const right = theirs.url.replace('//', '//:sesame@');
    expect((await launch(tempDir(), { env: { REDIS_URL: right } })).redis.version).toBe(theirs.version);
  });

  it('that is no Redis URL is refused with the form expected', async () => {
    const attempt = launch(tempDir(), { env: { REDIS_URL: 'localhost 6379' } });
    await expect(attempt).rejects.toThrow(/not of the form redis:\/\//);
  });
});

describe('a private Redis', () => {
  it('keeps its data, port and folder over kill9 and restart', PORT_MAY_BE_TAKEN, async () => {
    const redis = await privateRedis();
    const before = redis.pid;
    await ask(redis.url, 'SET', 'kept', 'yes');
    await expect.poll(() => aofSize(redis.dataDir)).toBeGreaterThan(0);
    await redis.kill9();
    await expect(ask(redis.url, 'PING')).rejects.toThrow(/ECONNREFUSED/);
    await redis.restart();
    expect(redis.pid).not.toBe(before);
    expect(await ask(redis.url, 'GET', 'kept')).toBe('yes');
  });

  it('removes its folder when it stops', async () => {
    const redis = await startPrivateRedis();
    await redis.stop();
    await redis.stop();
    expect(existsSync(redis.dataDir)).toBe(false);
  });

  it('is not the same as another one', async () => {
    const [one, two] = await Promise.all([privateRedis(), privateRedis({ appendonly: false })]);
    expect(one.port).not.toBe(two.port);
    expect(one.dataDir).not.toBe(two.dataDir);
  });

  it('has only the keys of one test run deleted', async () => {
    const redis = await privateRedis();
    await ask(redis.url, 'MSET', 'remuda-test-a:1', 'x', '{remuda-test-a}:2', 'x', 'theirs', 'x');
    expect(await deleteKeysContaining(redis.url, 'remuda-test-a')).toBe(2);
    expect(await ask(redis.url, 'KEYS', '*')).toEqual(['theirs']);
  });
});

function aofSize(dataDir: string): number {
  return readFileSync(join(dataDir, 'appendonlydir', 'appendonly.aof.1.incr.aof')).length;
}

/** Starts a server from a process that is then killed with SIGKILL; returns the server's pid. */
async function orphanedRedis(dataDir: string): Promise<number> {
  const { redis } = await launch(dataDir);
  const pid = redis.pid ?? 0;
  cleanups.push(() => processStarted(pid) && process.kill(pid, 'SIGKILL'));
  const owner = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(owner, 'spawn');
  const identity = { pid: owner.pid ?? 0, started: processStarted(owner.pid ?? 0) };
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  const record = join(dataDir, 'redis.json');
  writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, 'utf8')), owner: identity }));
  return pid;
}
