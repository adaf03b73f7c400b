/** The forms of a Redis URL, and that nothing that is said about one tells a password. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseRedisAddress, shownAddress, withTls } from './redis-address.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-address-'));
  for (const name of ['ca', 'cert', 'key']) writeFileSync(join(folder, name), `the ${name}`);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a single server', () => {
  it('has the usual port and database where none is given', () => {
    expect(parseRedisAddress('redis://cache')).toEqual({ kind: 'single', host: 'cache', port: 6379, db: 0 });
  });

  it('may have a user, a password with any sign in it, a port, a database and an address of IPv6', () => {
    expect(parseRedisAddress('redis://me:p%40%2F%3A%2C@[::1]:7000/3')).toEqual({
      ...{ kind: 'single', host: '::1', port: 7000, db: 3, username: 'me', password: 'p@/:,' },
    });
    expect(parseRedisAddress('redis://:secret@h')).toMatchObject({ username: undefined, password: 'secret' });
  });

  it('may be a Unix socket', () => {
    const socket = parseRedisAddress('unix:///run/redis.sock?db=2&password=pw');
    expect(socket).toMatchObject({ kind: 'socket', path: '/run/redis.sock', db: 2, password: 'pw' });
  });
});

describe('TLS', () => {
  it('trusts the certificates of a file and shows one with its key', () => {
    const url = withTls('rediss://h', {
      ca: join(folder, 'ca'),
      cert: join(folder, 'cert'),
      key: join(folder, 'key'),
    });
    expect(parseRedisAddress(url)).toMatchObject({ tls: { ca: 'the ca', cert: 'the cert', key: 'the key' } });
  });

  it('needs nothing but rediss, and without that no file makes sense', () => {
    expect(parseRedisAddress('rediss://h')).toMatchObject({ tls: {} });
    expect(() => parseRedisAddress(withTls('redis://h', { ca: '/x' }))).toThrow(/write rediss in place/);
  });

  it('says which file cannot be read, and that a certificate needs its key', () => {
    expect(() => parseRedisAddress('rediss://h?tls_ca=/not/there')).toThrow(/tls_ca cannot be read: ENOENT/);
    const cert = encodeURIComponent(join(folder, 'cert'));
    expect(() => parseRedisAddress(`rediss://h?tls_cert=${cert}`)).toThrow(
      /tls_cert and tls_key go together/,
    );
  });
});

describe('Sentinels', () => {
  it('are several, with the name of what they watch', () => {
    expect(parseRedisAddress('redis+sentinel://me:pw@a,b:26380/main/2?sentinel_password=s')).toEqual({
      kind: 'sentinel',
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 26380 },
      ],
      ...{ master: 'main', db: 2, username: 'me', password: 'pw' },
      ...{ sentinelUsername: undefined, sentinelPassword: 's' },
    });
  });

  it('need that name', () => {
    expect(() => parseRedisAddress('redis+sentinel://a,b')).toThrow(/name of the master is missing/);
  });
});

describe('a Cluster', () => {
  it('is some of its servers', () => {
    expect(parseRedisAddress('rediss+cluster://me:pw@a:1,b')).toMatchObject({
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 6379 },
      ],
      ...{ username: 'me', password: 'pw', tls: {} },
    });
  });

  it('has no other database than 0', () => {
    expect(() => parseRedisAddress('redis+cluster://a/1')).toThrow(/one database/);
  });
});

describe('what is wrong is said, and no password with it', () => {
  const wrong = [
    'http://me:hushhush@h',
    'redis://me:hushhush@h,i',
    'redis://me:hush/hushhush@h',
    'redis://me:hushhush@h:99999',
    'redis://me:hushhush@h/x',
    'redis://me:hushhush@h?password=hushhush',
    'redis+sentinel://me:hushhush@h?sentinel_password=hushhush',
  ];
  for (const url of wrong) {
    it(url, () => {
      let said = '';
      try {
        parseRedisAddress(url);
      } catch (error) {
        said = (error as Error).message;
      }
      expect(said).not.toBe('');
      expect(said).not.toContain('hush');
      expect(shownAddress(url)).not.toContain('hush');
    });
  }
});
