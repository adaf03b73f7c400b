/** The file store over a real Redis and a real folder: whole or not at all, found again, seen by its tenant alone. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type BulkFilesOptions, createBulkFiles, type FileStore } from '@remuda/core/bulk/files/bulk-files';
import { FileSweeper } from '@remuda/core/bulk/files/file-sweeper';
import { FOLDER_MARKER } from '@remuda/core/bulk/files/folder-identity';
import type { Clock } from '@remuda/core/lifecycle/clock';
import { Keys } from '@remuda/core/store/keys';
import { closeRedis, connectRedis, type Redis, waitUntilReady } from '@remuda/core/store/redis';
import { deleteKeysContaining } from '@remuda/infra/redis-launcher';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const url = process.env.REMUDA_TEST_REDIS_URL as string;
const mark = `remuda-test-files-${randomBytes(6).toString('hex')}`;
let redis: Redis;
let keys: Keys;
let folder: string;
let files: FileStore;
let now: number;
const clock: Clock = { now: () => now, after: () => () => {} };
let count = 0;

beforeAll(async () => {
  redis = connectRedis({ url, role: 'worker', name: 'test-files', onError() {} });
  await waitUntilReady(redis, 60_000);
});
afterAll(async () => {
  closeRedis(redis);
  await deleteKeysContaining(url, mark);
});
beforeEach(async () => {
  now = 1_800_000_000_000;
  keys = new Keys({ prefix: `${mark}-${count++}`, shards: 1 });
  folder = await mkdtemp(join(tmpdir(), 'remuda-files-'));
  files = store();
  return () => rm(folder, { recursive: true, force: true });
});

function store(more: Partial<BulkFilesOptions> = {}): FileStore {
  return createBulkFiles({ folder, redis, keys, clock, ...more });
}

const facts = (filename = 'rows.jsonl', tenant = 'a', keptS: number | null = null) =>
  ({ filename, purpose: 'batch', tenant, keptS }) as const;
const text = (content: string): Readable => Readable.from([Buffer.from(content)]);
const add = (filename?: string, tenant?: string, keptS?: number | null) =>
  files.create(text('0123456789'), facts(filename, tenant, keptS));

async function contentOf(id: string, range?: { from: number; to: number }): Promise<string> {
  const { content } = await files.read(id, range);
  return Buffer.concat(await content.toArray()).toString();
}

/** Every file of the folder but its marker. */
async function onDisk(): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile() && entry.name !== FOLDER_MARKER).map(({ name }) => name);
}

const code = (expected: string) => expect.objectContaining({ code: expected });
const sweeper = (of = files): FileSweeper =>
  new FileSweeper({ files: of, redis, keys, clock, onError: (error) => expect(error).toBeUndefined() });

describe('a file', () => {
  it('is given back as it came, whole or in part', async () => {
    const file = await add('../x/rows.jsonl');
    expect(file).toMatchObject({ object: 'file', bytes: 10, filename: 'rows.jsonl', purpose: 'batch' });
    expect(file).toMatchObject({ created_at: now / 1000, expires_at: null, status: 'processed' });
    expect(await files.get(file.id)).toEqual(file);
    expect(await contentOf(file.id)).toBe('0123456789');
    expect(await contentOf(file.id, { from: 2, to: 5 })).toBe('234');
    expect(await contentOf(file.id, { from: 5, to: 5 })).toBe('');
    expect(await readFile(files.pathOf(file.id), 'utf8')).toBe('0123456789');
  });

  it('is not there for another tenant', async () => {
    const { id } = await add('rows.jsonl', 'a');
    await expect(files.get(id, 'b')).rejects.toEqual(code('file_not_found'));
    await expect(files.read(id, undefined, 'b')).rejects.toEqual(code('file_not_found'));
    await expect(files.delete(id, 'b')).rejects.toEqual(code('file_not_found'));
    expect((await files.list({ limit: 10 }, 'b')).entries).toEqual([]);
    expect((await files.get(id, 'a')).id).toBe(id);
  });

  it('is deleted with everything, but not while a job reads it', async () => {
    const { id } = await add();
    const busy = store({ readers: async () => new Map([[id, 'batch_1']]) });
    await expect(busy.delete(id)).rejects.toThrow(/is read by batch_1/);
    await files.delete(id);
    await expect(files.delete(id)).rejects.toEqual(code('file_not_found'));
    expect(await onDisk()).toEqual([]);
    expect((await files.list({ limit: 10 })).entries).toEqual([]);
  });

  it('has an id that never becomes another path', async () => {
    for (const id of ['../../etc/passwd', 'file-../../../../etc/pass', '', 'file-short'])
      await expect(files.get(id)).rejects.toEqual(code('file_not_found'));
  });

  it('that is on the disk already is taken over by its name, once', async () => {
    await files.checkFolder();
    const made = join(folder, 'out.jsonl');
    await writeFile(made, 'answers');
    const wanted = { ...facts('out.jsonl'), id: 'file-00000000000000000001' };
    const file = await files.adopt(made, wanted);
    expect(await onDisk()).toEqual([`${file.id}`, `${file.id}.json`]);
    await redis.del(keys.bulkFile(file.id));
    expect(await files.adopt(made, wanted)).toEqual(file);
    expect(await contentOf(file.id)).toBe('answers');
  });
});

describe('nothing is left of a stream', () => {
  it('that breaks off', async () => {
    const broken = new Readable({ read() {} });
    broken.push('half of');
    const coming = files.create(broken, facts());
    broken.destroy();
    await expect(coming).rejects.toThrow();
    expect(await onDisk()).toEqual([]);
  });

  it('that is longer than is taken', async () => {
    const coming = files.create(text('0123456789'), { ...facts(), mostBytes: 9 });
    await expect(coming).rejects.toEqual(code('payload_too_large'));
    expect(await onDisk()).toEqual([]);
  });

  it.skipIf(!existsSync('/dev/full'))('that fills the disk, which is said', async () => {
    // The one file of Linux on whose disk there is never room.
    const full = store({ openNew: () => open('/dev/full', 'w') });
    await expect(full.create(text('x'), facts())).rejects.toEqual(code('disk_full'));
    expect(await onDisk()).toEqual([]);
  });

  it('that Redis did not learn of', async () => {
    const away = store({ guard: failingFrom(2) });
    await expect(away.create(text('x'), facts())).rejects.toThrow('away');
    expect(await onDisk()).toEqual([]);
  });
});

/** Redis goes away with the nth question. */
function failingFrom(nth: number): BulkFilesOptions['guard'] {
  let asked = 0;
  return { run: (work) => (++asked < nth ? work() : Promise.reject(new Error('away'))) };
}

describe('the list', () => {
  it('is newest first, page by page, also behind a file that was deleted meanwhile', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      now += i % 2;
      ids.unshift((await add()).id);
    }
    const all = (await files.list({ limit: 10 })).entries.map(({ id }) => id);
    expect([...all].sort()).toEqual([...ids].sort());
    const first = await files.list({ limit: 2 });
    expect(first.hasMore).toBe(true);
    await files.delete(all[1] as string);
    const second = await files.list({ limit: 3, after: all[1] });
    expect([...first.entries, ...second.entries].map(({ id }) => id)).toEqual(all);
    expect(second.hasMore).toBe(false);
    const oldest = (await files.list({ limit: 10, order: 'asc' })).entries.map(({ id }) => id);
    expect(oldest).toEqual(all.filter((_, i) => i !== 1).reverse());
    await expect(files.list({ limit: 1, after: 'file-ZZZZZZZZZZZZZZZZ' })).rejects.toEqual(
      code('file_not_found'),
    );
  });

  it('can be narrowed to a purpose', async () => {
    await add();
    const output = await files.create(text('x'), { ...facts(), purpose: 'batch_output' });
    expect((await files.list({ limit: 10, purpose: 'batch_output' })).entries).toEqual([output]);
  });
});

describe('what Redis has lost', () => {
  it('is found on the disk: one file when it is asked for, all by the sweeper', async () => {
    const one = await add('one.csv', 'a', 3_600);
    const two = await add('two.csv', 'b');
    await deleteKeysContaining(url, keys.space.prefix);
    expect(await files.get(one.id, 'a')).toEqual(one);
    await sweeper().turn();
    expect((await files.list({ limit: 10 })).entries.map(({ id }) => id).sort()).toEqual(
      [one.id, two.id].sort(),
    );
    expect((await files.list({ limit: 10 }, 'b')).entries).toEqual([two]);
  });
});

describe('the sweeper', () => {
  it('deletes what has expired, but not under a job that reads it', async () => {
    const kept = await add('kept', 'a', 3_600);
    const gone = await add('gone', 'a', 60);
    now += 61_000;
    await expect(files.get(gone.id)).rejects.toEqual(code('file_not_found'));
    const role = sweeper(store({ readers: async () => new Map([[gone.id, 'batch_1']]) }));
    await role.turn();
    expect(await onDisk()).toContain(gone.id);
    await role.stop();
    now += 700_000;
    await sweeper().turn();
    expect((await onDisk()).sort()).toEqual([kept.id, `${kept.id}.json`]);
    expect(await redis.exists(keys.bulkFile(gone.id))).toBe(0);
  });

  it('takes away what dead processes had begun, and facts without a content', async () => {
    const { id } = await add();
    await rm(files.pathOf(id));
    const staged = await files.stage(text('half'));
    const old = join(folder, 'incoming', 'of-a-dead-process.partial');
    await writeFile(old, 'half');
    await utimes(old, 0, 0);
    await sweeper().turn();
    expect(await readdir(join(folder, 'incoming'))).toHaveLength(1);
    expect(await redis.zcard(keys.bulkFiles(null))).toBe(0);
    await staged.drop();
    expect(await readdir(join(folder, 'incoming'))).toEqual([]);
  });

  it('makes no folder where there never was a file', async () => {
    await rm(folder, { recursive: true });
    await sweeper().turn();
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
  });
});

it('a process with another folder than the fleet is told so before it writes or deletes anything', async () => {
  const { id } = await add();
  const other = await mkdtemp(join(tmpdir(), 'remuda-files-'));
  try {
    const strange = store({ folder: other });
    await expect(strange.create(text('x'), facts())).rejects.toThrow(
      /REMUDA_FILES of this process is another/,
    );
    const errors: Error[] = [];
    const role = new FileSweeper({
      files: strange,
      redis,
      keys,
      clock,
      onError: (error) => errors.push(error),
    });
    await expect(role.turn()).rejects.toEqual(code('unsupported_feature'));
    expect((await files.get(id)).id).toBe(id);
    expect(await readdir(other)).toEqual([FOLDER_MARKER]);
  } finally {
    await rm(other, { recursive: true });
  }
});
