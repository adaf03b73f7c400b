/** Outputs delivered to a real S3-compatible server, with the official SDK. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Patience } from '../../repository/sources/patience.js';
import { S3Objects } from '../../repository/sources/s3-client.js';
import { BUCKET, CREDENTIALS, S3Server } from '../../repository/sources/s3-server.fixture.js';
import { checkTarget, deliver, type OutputTarget, parseTarget, type TargetOptions } from './output-target.js';
import { uploadFile } from './s3-upload.js';

const MB = 2 ** 20;
let server: S3Server;
let folder: string;

beforeAll(async () => {
  server = await S3Server.start();
  folder = await mkdtemp(join(tmpdir(), 'remuda-upload-'));
  // The SDK's own chain is what a worker uses.
  vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server.stop();
  await rm(folder, { recursive: true });
});

const { signal } = new AbortController();
const patience = new Patience({ pauseMs: 5, attempts: 2 });
const options = (overwrite: boolean): TargetOptions => ({ overwrite, patience, signal });

function target(key: string, bucket = BUCKET): OutputTarget {
  return parseTarget(`s3://${bucket}/${key}`, { endpoint: server.endpoint });
}

async function stored(key: string): Promise<Buffer> {
  const objects = await S3Objects.open({ type: 's3', bucket: BUCKET, prefix: '', endpoint: server.endpoint });
  const { body } = await objects.get(key, 0, null, signal);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  objects.destroy();
  return Buffer.concat(pieces);
}

describe('an output in S3', () => {
  it('is refused where an object is there, before anything runs', async () => {
    await server.put('there.csv', 'old');
    await expect(checkTarget(target('there.csv'), options(false))).rejects.toMatchObject({
      code: 'output_exists',
      message: expect.stringContaining(`s3://${BUCKET}/there.csv`),
    });
    await checkTarget(target('there.csv'), options(true));
    await checkTarget(target('new.csv'), options(false));
  });

  it('gets the whole file, and the local one goes away', async () => {
    const partial = join(folder, 'part');
    await writeFile(partial, 'a,b\n');
    await deliver(partial, target('small.csv'), options(false));
    expect((await stored('small.csv')).toString()).toBe('a,b\n');
    expect(await readdir(folder)).toEqual([]);
  });

  it('that is large goes in parts, each tried again when the connection breaks', async () => {
    const bytes = randomBytes(12 * MB);
    const path = join(folder, 'large');
    await writeFile(path, bytes);
    const objects = await S3Objects.open({
      type: 's3',
      bucket: BUCKET,
      prefix: '',
      endpoint: server.endpoint,
    });
    server.requests.length = 0;
    // The first answer, to the beginning of the upload, does not arrive.
    server.cutAfter(1);
    const told: number[] = [];
    await uploadFile(objects, 'large', path, {
      patience,
      signal,
      partBytes: 5 * MB,
      progress: (sent) => told.push(sent),
    });
    objects.destroy();
    expect(told).toEqual([5 * MB, 10 * MB, 12 * MB]);
    expect((await stored('large')).equals(bytes)).toBe(true);
  });

  it('says what is wrong with the bucket', async () => {
    const partial = join(folder, 'none');
    await writeFile(partial, 'x');
    await expect(deliver(partial, target('k', 'nosuchbucket'), options(false))).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('no such bucket'),
    });
    expect(await readdir(folder)).toContain('none');
  });
});
