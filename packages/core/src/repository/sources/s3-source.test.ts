/** A model fetched from a real S3-compatible server, with the official SDK. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { S3Source } from '@remuda/schemas';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { FileHashes } from '../file-hashes.js';
import { scanRepository } from '../manifests.js';
import { wholeSha256 } from './s3-client.js';
import { BUCKET, CREDENTIALS, S3Server } from './s3-server.fixture.js';
import { SourceCache, type SourceCacheOptions } from './source-cache.js';
import { writeManifest } from './source-manifest.js';

const MB = 1024 * 1024;
const weights = randomBytes(3 * MB);
const model = { 'model.yaml': 'harness: onnx\n', '1/model.onnx': weights, '1/labels.txt': 'a\nb\n' };

let server: S3Server;
let folder: string;
let prefix: string;
let spec: S3Source;

beforeAll(async () => {
  server = await S3Server.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  // The SDK's own chain is what a worker uses.
  vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey);
  folder = await mkdtemp(join(tmpdir(), 'remuda-cache-'));
  prefix = `team/${randomBytes(4).toString('hex')}`;
  spec = { type: 's3', bucket: BUCKET, prefix, endpoint: server.endpoint };
  server.requests.length = 0;
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function upload(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, body] of Object.entries(files)) await server.put(`${prefix}/${path}`, body);
}

/** As a publisher does it: a folder, its manifest, all of it to the bucket. */
async function publish(files: Record<string, string | Buffer>): Promise<void> {
  const local = await mkdtemp(join(tmpdir(), 'remuda-publish-'));
  for (const [path, body] of Object.entries(files)) {
    await mkdir(dirname(join(local, path)), { recursive: true });
    await writeFile(join(local, path), body);
  }
  await writeManifest(local);
  await upload({ ...files, 'manifest.json': await readFile(join(local, 'manifest.json')) });
  await rm(local, { recursive: true });
}

function cache(options: Partial<SourceCacheOptions> = {}): SourceCache {
  return new SourceCache({ folder, pauseMs: 5, ...options });
}

function failure(source: S3Source = spec): Promise<string> {
  return cache({ attempts: 1 })
    .sync('m', source)
    .then(
      () => 'no failure',
      (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
    );
}

async function seen(): Promise<unknown> {
  const { models } = await scanRepository(folder, new FileHashes());
  return models.map(({ name, versions, problems }) => [
    name,
    versions.map(({ version }) => version),
    problems,
  ]);
}

const cached = (path: string): Promise<Buffer> => readFile(join(folder, 'm', path));
const ofWeights = (): Array<string | undefined> =>
  server.requests.filter(({ line }) => /^GET .*model\.onnx/.test(line)).map(({ range }) => range);

describe('a prefix with a manifest', () => {
  it('becomes a model of the repository', async () => {
    await publish({ ...model, '1/golden/a b+ü.json': '{}' });
    expect(await cache().sync('m', spec)).toMatchObject({ versions: ['1'], changed: ['1', 'model.yaml'] });
    expect(await seen()).toEqual([['m', ['1'], []]]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
    expect((await cached('1/golden/a b+ü.json')).toString()).toBe('{}');
  });

  it('and a file that is not what the manifest says is refused', async () => {
    await publish(model);
    await upload({ '1/labels.txt': 'b\na\n' });
    expect(await failure()).toMatch(/^source_invalid: s3:.*1\/labels\.txt: expected sha256 /);
    await upload({ '1/labels.txt': 'longer than it was' });
    expect(await failure()).toContain('expected 4 bytes as the manifest says, found 18');
    expect(await seen()).toEqual([]);
  });
});

describe('a prefix without a manifest', () => {
  it('becomes a model too, and is not fetched again while it is as it was', async () => {
    await upload(model);
    expect(await cache().sync('m', spec)).toMatchObject({ changed: ['1', 'model.yaml'] });
    expect(await seen()).toEqual([['m', ['1'], []]]);
    server.requests.length = 0;
    expect(await cache().sync('m', spec)).toMatchObject({ versions: ['1'], changed: [] });
    expect(server.requests.map(({ line }) => line.split(' ')[1])).toEqual([
      expect.stringContaining('list-type=2'),
    ]);
  });

  it('brings what is new', async () => {
    await upload(model);
    await cache().sync('m', spec);
    await upload({ '2/model.onnx': 'two', 'model.yaml': 'harness: onnx\nmax_batch_size: 2\n' });
    expect(await cache().sync('m', spec)).toMatchObject({ changed: ['2', 'model.yaml'] });
    expect(ofWeights()).toHaveLength(2);
  });

  it('whose version has changed is refused, and the version stays', async () => {
    await upload(model);
    await cache().sync('m', spec);
    await upload({ '1/labels.txt': 'b\na\n' });
    const was = createHash('sha256').update('a\nb\n').digest('hex');
    expect(await failure()).toContain(
      `m@1: 1/labels.txt has changed in the source: expected sha256 ${was}, received `,
    );
    expect((await cached('1/labels.txt')).toString()).toBe('a\nb\n');
  });
});

describe('a transfer that breaks', () => {
  it('goes on where it was', async () => {
    await publish(model);
    server.cutAfter(MB);
    await cache().sync('m', spec);
    expect(ofWeights()).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d{4,}-$/)]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('is gone on with by the next sync, without a manifest too', async () => {
    await upload(model);
    server.cutAfter(MB);
    expect(await failure()).toMatch(/^source_unavailable: s3:.*1\/model\.onnx: .*what has come is kept/);
    expect(await seen()).toEqual([]);
    await cache().sync('m', spec);
    expect(ofWeights()).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d{4,}-$/)]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
    expect(await readdir(join(folder, '.sources', 'm'))).toEqual(['record.json']);
  });

  it('and whose object changes meanwhile starts anew, with the bytes of one state alone', async () => {
    await upload(model);
    server.cutAfter(MB);
    await failure();
    const other = randomBytes(2 * MB);
    await upload({ '1/model.onnx': other });
    await cache().sync('m', spec);
    expect((await cached('1/model.onnx')).equals(other)).toBe(true);
  });
});

describe('a server that stalls', () => {
  it('is left after a while and asked for the rest', async () => {
    await publish(model);
    server.stallAfter(MB, () => undefined);
    await cache({ stallMs: 300 }).sync('m', spec);
    expect(ofWeights()).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]\d{4,}-$/)]);
    expect((await cached('1/model.onnx')).equals(weights)).toBe(true);
  });

  it('is not waited for when the caller has had enough', async () => {
    await publish(model);
    const stop = new AbortController();
    server.stallAfter(MB, () => stop.abort(new Error('the worker stops')));
    const sync = cache({ stallMs: 3_600_000 }).sync('m', spec, { signal: stop.signal });
    await expect(sync).rejects.toThrow('the worker stops');
    expect(await seen()).toEqual([]);
  });
});

describe('what cannot be read', () => {
  it('is told with what to do', async () => {
    expect(await failure()).toContain(`${prefix}/ is empty; check bucket and prefix`);
    expect(await failure({ ...spec, bucket: 'not-there' })).toMatch(
      /^source_invalid: s3:\/\/not-there.*no such bucket; check the name/,
    );
    expect(await failure({ ...spec, endpoint: 'http://127.0.0.1:1' })).toMatch(
      /^source_unavailable: .*ECONNREFUSED/,
    );
  });

  it('for want of the right credentials is told so', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'nobody');
    expect(await failure()).toMatch(/^source_invalid: .*the access key is not known; check the credentials/);
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE'])
      vi.stubEnv(name, undefined);
    for (const name of ['AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE'])
      vi.stubEnv(name, join(folder, 'none'));
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    expect(await failure()).toMatch(/^source_invalid: .*: no credentials; give the worker AWS_ACCESS_KEY_ID/);
  });
});

describe('a checksum of S3', () => {
  it('counts only when it is of the whole object', () => {
    const hash = createHash('sha256').update('x');
    expect(wholeSha256(hash.copy().digest('base64'))).toBe(hash.copy().digest('hex'));
    expect(wholeSha256(`${hash.digest('base64')}-3`)).toBeNull();
    expect(wholeSha256('AAAAAA==')).toBeNull();
    expect(wholeSha256(undefined)).toBeNull();
  });
});
