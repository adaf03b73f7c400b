/** Inputs that lie elsewhere: whole and right in the end, or not there, and gone on with after a break. */
import { readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FileServer } from '../../repository/sources/file-server.fixture.js';
import { CREDENTIALS, S3Server } from '../../repository/sources/s3-server.fixture.js';
import { parseAllowed } from '../../webhooks/address-rules.js';
import { writeFault } from '../output/disk-faults.js';
import { type FetchOptions, fetchInput } from './fetch-input.js';
import { InputFolder } from './input.fixture.js';

let folder: InputFolder;
let server: FileServer;
beforeAll(async () => {
  folder = await InputFolder.make();
  server = await FileServer.start();
});
afterAll(async () => {
  await server.stop();
  await folder.remove();
});

const CONTENT = Buffer.from(Array.from({ length: 40_000 }, (_, i) => `{"i":${i}}\n`).join(''));

function options(name: string, more: Partial<FetchOptions> = {}): FetchOptions {
  return {
    to: `${folder.path}/${name}/input`,
    signal: new AbortController().signal,
    allowed: parseAllowed('127.0.0.1'),
    patience: { pauseMs: 1, attempts: 2 },
    ...more,
  };
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('over http', () => {
  it('a file comes whole, and is not asked for again', async () => {
    server.files.set('/whole.jsonl', CONTENT);
    const seen: Array<[number, number | null]> = [];
    const wanted = options('whole', { onProgress: (bytes, total) => seen.push([bytes, total]) });
    const fetched = await fetchInput(`${server.url}/whole.jsonl`, wanted);
    expect(fetched).toEqual({ path: wanted.to, bytes: CONTENT.length });
    expect((await readFile(wanted.to)).equals(CONTENT)).toBe(true);
    expect(seen.at(-1)).toEqual([CONTENT.length, CONTENT.length]);
    expect(await fetchInput(`${server.url}/whole.jsonl`, wanted)).toEqual(fetched);
    expect(server.seen('/whole.jsonl').length).toBe(1);
    expect(await isThere(`${wanted.to}.state`)).toBe(false);
  });

  it('a transfer that breaks off goes on where it was', async () => {
    server.files.set('/breaks.jsonl', CONTENT);
    server.faults.set('/breaks.jsonl', [
      { kind: 'break', afterBytes: 100_000 },
      { kind: 'break', afterBytes: 50_000 },
    ]);
    const wanted = options('breaks', { patience: { pauseMs: 1, attempts: 5 } });
    await fetchInput(`${server.url}/breaks.jsonl`, wanted);
    expect((await readFile(wanted.to)).equals(CONTENT)).toBe(true);
    const [first, ...more] = server.seen('/breaks.jsonl');
    expect(first?.range).toBeUndefined();
    expect(more.length).toBeGreaterThan(0);
    for (const { range, ifRange } of more)
      expect([range, ifRange]).toEqual([expect.stringMatching(/^bytes=[1-9]\d*-$/), expect.any(String)]);
  });

  it('another process goes on with what one has left; a file that has changed is begun anew', async () => {
    for (const changed of [false, true]) {
      const path = `/left-${changed}.jsonl`;
      server.files.set(path, CONTENT);
      server.faults.set(path, [
        { kind: 'break', afterBytes: 100_000 },
        { kind: 'status', status: 503 },
      ]);
      const wanted = options(`left-${changed}`);
      const broken = fetchInput(`${server.url}${path}`, wanted);
      await expect(broken).rejects.toMatchObject({ code: 'source_unavailable' });
      await expect(broken).rejects.toThrow(/503; what has come is kept: resume the job to go on there$/);
      expect(await isThere(wanted.to)).toBe(false);
      const content = changed ? Buffer.from(CONTENT.toString().replaceAll('i', 'j')) : CONTENT;
      server.files.set(path, content);
      await fetchInput(`${server.url}${path}`, wanted);
      expect((await readFile(wanted.to)).equals(content)).toBe(true);
      expect(server.seen(path).at(-1)?.status).toBe(changed ? 200 : 206);
    }
  });

  it('a server that sends a part of another file is asked for all of it', async () => {
    const path = '/careless.jsonl';
    const content = Buffer.from(CONTENT.toString().replaceAll('i', 'j'));
    server.files.set(path, CONTENT);
    server.faults.set(path, [
      { kind: 'break', afterBytes: 100_000 },
      { kind: 'status', status: 503 },
    ]);
    await expect(fetchInput(`${server.url}${path}`, options('careless'))).rejects.toThrow(/503/);
    server.files.set(path, content);
    server.heedsIfRange = false;
    await fetchInput(`${server.url}${path}`, options('careless')).finally(() => {
      server.heedsIfRange = true;
    });
    expect((await readFile(options('careless').to)).equals(content)).toBe(true);
  });

  it('without an ETag a break is begun anew', async () => {
    server.files.set('/untold.jsonl', CONTENT);
    server.faults.set('/untold.jsonl', [{ kind: 'break', afterBytes: 100_000 }]);
    server.tellsEtag = false;
    const wanted = options('untold');
    await fetchInput(`${server.url}/untold.jsonl`, wanted).finally(() => {
      server.tellsEtag = true;
    });
    expect((await readFile(wanted.to)).equals(CONTENT)).toBe(true);
  });

  it('what is not there is file_not_found, and what may not be reached is refused', async () => {
    await expect(fetchInput(`${server.url}/none`, options('none'))).rejects.toMatchObject({
      code: 'file_not_found',
      message: expect.stringMatching(/answered 404; check the address$/),
    });
    const before = server.requests.length;
    const { allowed: _, ...strict } = options('refused');
    await expect(fetchInput(`${server.url}/whole.jsonl`, strict)).rejects.toThrow(/may not be fetched/);
    expect(server.requests.length).toBe(before);
    await expect(fetchInput('ftp://host/a', options('ftp'))).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });

  it('a transfer that is called off ends, and leaves nothing that looks whole', async () => {
    server.files.set('/stalls.jsonl', CONTENT);
    server.faults.set('/stalls.jsonl', [{ kind: 'stall', afterBytes: 1_000 }]);
    const control = new AbortController();
    server.onStall = () => control.abort(new Error('called off'));
    const wanted = options('stalls', { signal: control.signal });
    await expect(fetchInput(`${server.url}/stalls.jsonl`, wanted)).rejects.toThrow('called off');
    expect(await isThere(wanted.to)).toBe(false);
  });
});

it('from S3 an object comes whole, also after a break', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey);
  const s3 = await S3Server.start();
  try {
    await s3.put('in/rows.jsonl', CONTENT);
    s3.cutAfter(200_000);
    const wanted = options('s3', { s3: { endpoint: s3.endpoint } });
    await fetchInput('s3://models/in/rows.jsonl', wanted);
    expect((await readFile(wanted.to)).equals(CONTENT)).toBe(true);
    expect(s3.requests.at(-1)?.range).toMatch(/^bytes=[1-9]/);
    const none = fetchInput('s3://models/in/none', options('s3-none', { s3: { endpoint: s3.endpoint } }));
    await expect(none).rejects.toMatchObject({ code: 'file_not_found' });
  } finally {
    await s3.stop();
    vi.unstubAllEnvs();
  }
});

describe('from a stream', () => {
  it('all of it is there, or nothing', async () => {
    const wanted = options('stream');
    expect((await fetchInput(Readable.from([CONTENT, Buffer.from('end')]), wanted)).bytes).toBe(
      CONTENT.length + 3,
    );
    expect((await readFile(wanted.to)).subarray(-3).toString()).toBe('end');
    const broken = options('broken-stream');
    const stream = Readable.from(
      (function* () {
        yield CONTENT;
        throw new Error('the pipe broke');
      })(),
    );
    await expect(fetchInput(stream, broken)).rejects.toThrow('the pipe broke');
    expect(await isThere(broken.to)).toBe(false);
    expect(await isThere(`${broken.to}.partial`)).toBe(false);
  });
});

it('a disk that is full is disk_full, and says what to do', async () => {
  // A device that has no room, where there is one.
  if (!(await isThere('/dev/full'))) return;
  const { writeFile } = await import('node:fs/promises');
  const error = await writeFile('/dev/full', 'x').catch((fault) => fault);
  expect(await writeFault('spool', error)).toMatchObject({
    code: 'disk_full',
    message: expect.stringMatching(/^spool: the disk is full.*free space, then resume/),
  });
});
