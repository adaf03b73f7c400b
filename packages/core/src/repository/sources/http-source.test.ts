/** A model fetched from a real HTTP server: what arrives in the cache, what breaks survive, what is refused. */
import { fork } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HttpSource } from '@remuda/schemas';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileHashes } from '../file-hashes.js';
import { scanRepository } from '../manifests.js';
import { FileServer } from './file-server.fixture.js';
import { SourceCache, type SourceCacheOptions, type SyncProgress } from './source-cache.js';

const MB = 1024 * 1024;
const weights = randomBytes(3 * MB);
const model = { 'model.yaml': 'harness: onnx\n', '1/model.onnx': weights, '1/labels.txt': 'a\nb\n' };
const PATH = '/m/1/model.onnx';

let server: FileServer;
let folder: string;
let progress: SyncProgress[];

beforeEach(async () => {
  server = await FileServer.start();
  folder = await mkdtemp(join(tmpdir(), 'remuda-cache-'));
  progress = [];
});
afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Puts the files behind the server, with a manifest; `lies` are written into the manifest's entries. */
function publish(files: Record<string, string | Buffer>, lies: Record<string, object> = {}): HttpSource {
  const entries = Object.entries(files).map(([path, content]) => {
    const bytes = Buffer.from(content);
    server.files.set(`/m/${path}`, bytes);
    return { path, size: bytes.length, sha256: sha256(bytes), ...lies[path] };
  });
  return publishManifest({ files: entries });
}

function publishManifest(manifest: object): HttpSource {
  server.files.set('/m/manifest.json', Buffer.from(JSON.stringify(manifest)));
  return { type: 'http', url: `${server.url}/m/manifest.json` };
}

function cache(options: Partial<SourceCacheOptions> = {}): SourceCache {
  return new SourceCache({ folder, pauseMs: 5, onProgress: (step) => progress.push(step), ...options });
}

async function cached(path: string): Promise<Buffer> {
  return readFile(join(folder, 'm', path));
}

/** All that a scan sees of the cache. */
async function seen(): Promise<unknown> {
  const { models } = await scanRepository(folder, new FileHashes());
  return models.map(({ name, versions, problems }) => [
    name,
    versions.map(({ version }) => version),
    problems,
  ]);
}

/** The message of the error that the sync ends with. */
async function failure(spec: HttpSource, options: Partial<SourceCacheOptions> = {}): Promise<string> {
  return cache(options)
    .sync('m', spec)
    .then(
      () => 'no failure',
      (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
    );
}

describe('a manifest', () => {
  it('becomes a model of the repository', async () => {
    const spec = publish({ ...model, '1/golden/a.json': '{}', 'golden/all.json': '{}' });
    const result = await cache().sync('m', spec);
    expect(result).toEqual({
      folder: join(folder, 'm'),
      versions: ['1'],
      changed: ['1', 'model.yaml', 'golden/all.json'],
    });
    expect(await seen()).toEqual([['m', ['1'], []]]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
    expect(await readdir(join(folder, '.sources', 'm'))).toEqual(['record.json']);
  });

  it('tells its progress by file, to the last byte', async () => {
    await cache().sync('m', publish(model));
    const last = progress.filter((step) => step.file === '1/model.onnx').at(-1);
    expect(last).toEqual({ model: 'm', file: '1/model.onnx', bytes: weights.length, total: weights.length });
  });

  it('is all that is asked for when nothing has changed', async () => {
    const spec = publish(model);
    await cache().sync('m', spec);
    server.requests.length = 0;
    expect(await cache().sync('m', spec)).toMatchObject({ versions: ['1'], changed: [] });
    expect(server.requests.map((request) => request.path)).toEqual(['/m/manifest.json']);
  });

  it('that gains a version and a configuration brings these alone', async () => {
    await cache().sync('m', publish(model));
    const spec = publish({
      ...model,
      'model.yaml': 'harness: onnx\nmax_batch_size: 2\n',
      '2/model.onnx': 'x',
    });
    server.requests.length = 0;
    expect(await cache().sync('m', spec)).toMatchObject({
      versions: ['1', '2'],
      changed: ['2', 'model.yaml'],
    });
    expect(server.requests.map((request) => request.path).sort()).toEqual([
      '/m/2/model.onnx',
      '/m/manifest.json',
      '/m/model.yaml',
    ]);
    expect(await seen()).toEqual([['m', ['1', '2'], []]]);
  });

  it('may change, add and withdraw golden cases of a version, which are not what it is', async () => {
    const before = { '1/golden/a.json': '1', '1/golden/b.json': '1', 'golden/c.json': '1', ...model };
    await cache().sync('m', publish(before));
    const spec = publish({ '1/golden/a.json': '2', '1/golden/d.json': '2', ...model });
    const { changed } = await cache().sync('m', spec);
    expect(changed.sort()).toEqual([
      '1/golden/a.json',
      '1/golden/b.json',
      '1/golden/d.json',
      'golden/c.json',
    ]);
    expect((await readdir(join(folder, 'm/1/golden'))).sort()).toEqual(['a.json', 'd.json']);
    expect((await cached('1/golden/a.json')).toString()).toBe('2');
    expect(server.seen(PATH)).toHaveLength(1);
    expect(await cache().sync('m', spec)).toMatchObject({ changed: [] });
  });

  it('may give a file an address of its own', async () => {
    const spec = publish(model, { '1/model.onnx': { url: '../blobs/w' } });
    server.files.set('/blobs/w', weights);
    server.files.delete(PATH);
    await cache().sync('m', spec);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('with a path that leads out of the model is refused', async () => {
    for (const path of ['../evil', '/etc/evil', '1/../../evil', '1\\evil', '.hidden/x', '1//x', 'C:/x']) {
      const spec = publish({ ...model, [path]: 'x' });
      expect(await failure(spec)).toMatch(
        /^source_invalid: .*files\.3\.path: expected a path below the model/,
      );
    }
    expect(await seen()).toEqual([]);
  });

  it('with two files in one place is refused', async () => {
    expect(await failure(publish({ ...model, 'MODEL.yaml': 'x' }))).toContain('"MODEL.yaml" is there twice');
    expect(await failure(publish({ ...model, '1/labels.txt/x': '' }))).toContain('both a file and a folder');
  });

  it('of another model, without model.yaml, without a version or that is none is refused', async () => {
    const files = [{ path: 'model.yaml', size: 1, sha256: sha256(weights) }];
    expect(await failure(publishManifest({ model: 'other', files }))).toContain('is of the model "other"');
    expect(await failure(publishManifest({ files }))).toContain('has no version; put the model into 1/');
    expect(await failure(publish({ '1/model.onnx': 'x' }))).toContain('has no model.yaml');
    server.files.set('/m/manifest.json', Buffer.from('<html>'));
    const spec: HttpSource = { type: 'http', url: `${server.url}/m/manifest.json` };
    expect(await failure(spec)).toContain('is not JSON; expected a manifest');
    expect(await failure({ ...spec, sha256: sha256(weights) })).toContain(
      `expected sha256 ${sha256(weights)}`,
    );
  });

  it('whose model.yaml is faulty, or names a file that is not there, leaves the one that works', async () => {
    await cache().sync('m', publish(model));
    const faulty = publish({ ...model, 'model.yaml': 'harness: onnx\nmax_batch_sise: 2\n' });
    expect(await failure(faulty)).toContain('model.yaml:2: max_batch_sise: unknown key');
    const lacking = publish({ ...model, 'model.yaml': 'harness: onnx\nmodel_path: net.onnx\n' });
    expect(await failure(lacking)).toContain('has no 1/net.onnx, which model.yaml names');
    expect((await cached('model.yaml')).toString()).toBe(model['model.yaml']);
  });
});

describe('a single .onnx file', () => {
  it('becomes version 1 with a minimal configuration', async () => {
    server.files.set('/net.onnx', weights);
    await cache().sync('m', { type: 'http', url: `${server.url}/net.onnx`, sha256: sha256(weights) });
    expect(await seen()).toEqual([['m', ['1'], []]]);
    expect((await cached('model.yaml')).toString()).toBe('harness: onnx\n');
  });

  it('needs a sha256', async () => {
    const spec: HttpSource = { type: 'http', url: `${server.url}/net.onnx` };
    expect(await failure(spec)).toContain('net.onnx needs a sha256');
  });
});

describe('a transfer that breaks', () => {
  it('goes on where it was', async () => {
    const spec = publish(model);
    server.faults.set(PATH, [
      { kind: 'break', afterBytes: MB },
      { kind: 'status', status: 503 },
    ]);
    await cache().sync('m', spec);
    const [first, , last] = server.seen(PATH);
    expect(first?.range).toBeUndefined();
    expect(Number(/^bytes=(\d+)-$/.exec(last?.range ?? '')?.[1])).toBeGreaterThan(0);
    expect(last).toMatchObject({ status: 206, ifRange: expect.stringMatching(/^"/) });
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('more often than it may fail comes to its end, as long as each try gets further', async () => {
    const spec = publish(model);
    server.faults.set(
      PATH,
      Array.from({ length: 6 }, () => ({ kind: 'break', afterBytes: 300_000 })),
    );
    await cache({ attempts: 2 }).sync('m', spec);
    expect(server.seen(PATH)).toHaveLength(7);
  });

  it('starts anew when the server knows no ranges', async () => {
    const spec = publish(model);
    server.ranges = false;
    server.faults.set(PATH, [{ kind: 'break', afterBytes: MB }]);
    await cache().sync('m', spec);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('and whose file changes meanwhile starts anew, with the bytes of one state alone', async () => {
    const before = Buffer.from(weights).fill(1);
    const spec = publish(model);
    server.files.set(PATH, before);
    server.faults.set(PATH, [
      { kind: 'break', afterBytes: MB },
      { kind: 'stall', afterBytes: 0 },
    ]);
    server.onStall = () => server.files.set(PATH, weights);
    await cache({ stallMs: 200 }).sync('m', spec);
    expect(server.seen(PATH).at(-1)).toMatchObject({ status: 200, range: expect.any(String) });
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('and goes on in another state of the file, which no ETag tells, is fetched whole', async () => {
    const spec = publish(model);
    server.tellsEtag = false;
    server.files.set(PATH, Buffer.from(weights).fill(1));
    server.faults.set(PATH, [{ kind: 'break', afterBytes: MB }]);
    await failure(spec, { attempts: 1 });
    server.files.set(PATH, weights);
    await cache().sync('m', spec);
    expect(server.seen(PATH).map(({ status }) => status)).toEqual([200, 206, 200]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('leaves nothing in a version that the source has taken out of it meanwhile', async () => {
    const spec = publish({ '1/wrong.txt': 'x', ...model });
    server.faults.set(PATH, [{ kind: 'break', afterBytes: MB }]);
    await failure(spec, { attempts: 1, concurrency: 1 });
    publish(model);
    await cache().sync('m', spec);
    expect((await readdir(join(folder, 'm/1'))).sort()).toEqual(['labels.txt', 'model.onnx']);
  });

  it('for good is told with the address and the place, and the next sync goes on there', async () => {
    const spec = publish(model);
    server.faults.set(PATH, [
      { kind: 'break', afterBytes: MB },
      { kind: 'status', status: 502 },
    ]);
    const told = await failure(spec, { attempts: 1 });
    expect(told).toMatch(
      /^source_unavailable: http:.*\/m\/1\/model\.onnx: .*\(1 try\); what has come is kept/,
    );
    expect(await seen()).toEqual([]);
    server.faults.clear();
    server.requests.length = 0;
    await cache().sync('m', spec);
    expect(server.seen(PATH)).toMatchObject([{ status: 206 }]);
    expect(server.seen('/m/model.yaml')).toEqual([]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('because its process was killed is gone on with by the next', async () => {
    const spec = publish(model);
    server.faults.set(PATH, [{ kind: 'stall', afterBytes: MB }]);
    const child = fork(
      fileURLToPath(new URL('../../../dist/repository/sources/sync-child.fixture.js', import.meta.url)),
      [folder, spec.url],
    );
    const got = new Promise<void>((resolve) => {
      child.on('message', (told: { bytes?: number }) => {
        if ((told.bytes ?? 0) >= MB / 2) resolve();
      });
    });
    await got;
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await seen()).toEqual([]);
    await cache().sync('m', spec);
    expect(server.seen(PATH).at(-1)).toMatchObject({ status: 206 });
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
    expect(await readdir(join(folder, '.sources', 'm'))).toEqual(['record.json']);
  });

  it('ends when the caller has had enough, and leaves no lease behind', async () => {
    const spec = publish(model);
    const stop = new AbortController();
    server.faults.set(PATH, [{ kind: 'stall', afterBytes: 10 }]);
    server.onStall = () => stop.abort(new Error('the worker stops'));
    await expect(cache().sync('m', spec, { signal: stop.signal })).rejects.toThrow('the worker stops');
    await cache().sync('m', spec);
    expect(await seen()).toEqual([['m', ['1'], []]]);
  });
});

describe('a server that stalls', () => {
  it('is left after a while and asked for the rest', async () => {
    const spec = publish(model);
    server.faults.set(PATH, [{ kind: 'stall', afterBytes: MB }]);
    await cache({ stallMs: 200 }).sync('m', spec);
    expect(server.seen(PATH)).toHaveLength(2);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('again and again is told so', async () => {
    const spec = publish(model);
    server.faults.set(
      '/m/manifest.json',
      Array.from({ length: 2 }, () => ({ kind: 'stall', afterBytes: 5 })),
    );
    const told = await failure(spec, { stallMs: 50, attempts: 2 });
    expect(told).toMatch(/manifest\.json: nothing came for 50 ms \(2 tries\)/);
  });
});

describe('what is not what was promised', () => {
  it('is refused with both sha256, and the cache is as it was', async () => {
    await cache().sync('m', publish(model));
    const wrong = 'f'.repeat(64);
    const spec = publish({ ...model, '2/model.onnx': 'two' }, { '2/model.onnx': { sha256: wrong } });
    const told = await failure(spec);
    expect(told).toMatch(/^source_invalid: http:.*\/m\/2\/model\.onnx: expected sha256 f{64}, received /);
    expect(told).toContain(sha256(Buffer.from('two')));
    expect(await seen()).toEqual([['m', ['1'], []]]);
  });

  it('is refused by its size before it is read, and while it is read where the server does not tell it', async () => {
    const spec = publish(model, { '1/model.onnx': { size: 5 } });
    expect(await failure(spec)).toContain(`expected 5 bytes, the source has ${weights.length}`);
    server.tellsSize = false;
    expect(await failure(spec)).toContain('expected 5 bytes, the source sends more');
    expect(await seen()).toEqual([]);
  });

  it('is refused when a version has changed, and the version stays', async () => {
    await cache().sync('m', publish(model));
    const told = await failure(publish({ ...model, '1/labels.txt': 'c\n' }));
    expect(told).toMatch(/m@1: 1\/labels\.txt has changed in the source: .*publish it as a new version/);
    expect(await failure(publish({ ...model, '1/more.txt': '' }))).toContain('expected no such file');
    expect((await cached('1/labels.txt')).toString()).toBe('a\nb\n');
  });

  it('is mended where it is the cache that was damaged', async () => {
    const spec = publish(model);
    await cache().sync('m', spec);
    await writeFile(join(folder, 'm/1/labels.txt'), 'scratched');
    expect(await cache().sync('m', spec)).toMatchObject({ changed: ['1'] });
    expect((await cached('1/labels.txt')).toString()).toBe('a\nb\n');
    expect(await readdir(join(folder, '.sources', 'm'))).toEqual(['record.json']);
  });

  it('is told at once when the file is not there or may not be had', async () => {
    const spec = publish(model);
    server.files.delete(PATH);
    expect(await failure(spec)).toMatch(/model\.onnx: the server answered 404; check the address/);
    server.faults.set('/m/manifest.json', [{ kind: 'status', status: 403 }]);
    expect(await failure(spec)).toMatch(/the server answered 403; check the headers/);
    expect(server.seen(PATH)).toHaveLength(1);
  });
});

describe('headers', () => {
  it('have their secrets looked up, and go to the host of the source alone', async () => {
    const other = await FileServer.start();
    try {
      other.files.set('/w', weights);
      const spec = publish(model, { '1/model.onnx': { url: `${other.url}/w` } });
      const headers = { authorization: 'env:TOKEN' };
      const secrets = (name: string): string | undefined => (name === 'TOKEN' ? 'Bearer x' : undefined);
      await cache({ secrets }).sync('m', { ...spec, headers });
      expect(new Set(server.requests.map((request) => request.authorization))).toEqual(new Set(['Bearer x']));
      expect(other.requests.map((request) => request.authorization)).toEqual([undefined]);
      expect(await failure({ ...spec, headers })).toContain('the secret "TOKEN" is not set');
    } finally {
      await other.stop();
    }
  });
});

describe('redirects', () => {
  it('are followed', async () => {
    const spec = publish(model);
    server.files.set('/elsewhere', weights);
    server.faults.set(PATH, [{ kind: 'redirect', location: '/elsewhere' }]);
    await cache().sync('m', spec);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('in a circle end with an error', async () => {
    const spec = publish(model);
    server.faults.set(
      PATH,
      Array.from({ length: 9 }, () => ({ kind: 'redirect', location: PATH })),
    );
    expect(await failure(spec)).toContain('more than 5 redirects');
    expect(server.seen(PATH)).toHaveLength(6);
  });
});

describe('several processes that fetch one model at once', () => {
  it('fetch it once between them', async () => {
    const spec = publish(model);
    const script = fileURLToPath(
      new URL('../../../dist/repository/sources/sync-child.fixture.js', import.meta.url),
    );
    const results = await Promise.all([
      cache().sync('m', spec),
      cache().sync('m', spec),
      ...[1, 2].map(async () => {
        const child = fork(script, [folder, spec.url]);
        const told: Array<{ result?: unknown; failed?: string }> = [];
        child.on('message', (message) => told.push(message as { result?: unknown }));
        await once(child, 'exit');
        return told.at(-1)?.result ?? told.at(-1)?.failed;
      }),
    ]);
    expect(results).toMatchObject(Array.from({ length: 4 }, () => ({ versions: ['1'] })));
    expect(server.seen(PATH)).toHaveLength(1);
    expect(await seen()).toEqual([['m', ['1'], []]]);
  });
});
