/** Files that parts grow in, and that outputs end as: after crashes, on full disks, beside files that are there. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { link, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Patience } from '../../repository/sources/patience.js';
import { FileSink, finishFile } from './file-sink.js';
import { checkTarget, deliver, parseTarget, type TargetOptions, targetText } from './output-target.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-output-'));
});
afterEach(() => rm(folder, { recursive: true }));

const path = (name: string): string => join(folder, name);
const refused = (code: string, text: string): object => ({ code, message: expect.stringContaining(text) });

describe('on a full disk', () => {
  it('an output that does not fit is refused as such, and leaves nothing', async () => {
    const child = fileURLToPath(
      new URL('../../../dist/bulk/output/full-disk-child.fixture.js', import.meta.url),
    );
    const script = 'ulimit -f 20; exec "$0" "$1" "$2"';
    const told = execFileSync('sh', ['-c', script, process.execPath, child, path('out.partial')], {
      encoding: 'utf8',
    });
    expect(told).toBe('disk_full');
    expect(await readdir(folder)).toEqual([]);
  });

  it.runIf(existsSync('/dev/full'))(
    'the message names the path, what is free, and what goes on',
    async () => {
      const sink = await FileSink.open('/dev/full');
      await sink.write(Buffer.from('x'));
      await expect(sink.close()).rejects.toMatchObject({
        code: 'disk_full',
        message: expect.stringMatching(
          /^\/dev\/full: the disk is full, .* free \(ENOSPC\).*free space, then resume/,
        ),
      });
    },
  );
});

describe('a sink', () => {
  it('writes what it was given, in order, small and large', async () => {
    const sink = await FileSink.open(path('out'));
    const pieces = [3, 700_000, 600_000, 2_000_000, 1].map((size, i) => Buffer.alloc(size, i + 1));
    for (const piece of pieces) {
      // The memory of a piece is the caller's again at once.
      const lent = Buffer.from(piece);
      await sink.write(lent);
      lent.fill(0);
    }
    await sink.close();
    expect((await readFile(path('out'))).equals(Buffer.concat(pieces))).toBe(true);
  });
});

describe('a file that is whole', () => {
  it('gets its name, and does not take that of another unless it was asked to', async () => {
    await writeFile(path('part'), 'new');
    await writeFile(path('out'), 'old');
    const finished = finishFile(path('part'), path('out'), { overwrite: false });
    await expect(finished).rejects.toMatchObject(refused('output_exists', path('out')));
    expect(await readFile(path('out'), 'utf8')).toBe('old');
    await finishFile(path('part'), path('out'), { overwrite: true });
    expect(await readFile(path('out'), 'utf8')).toBe('new');
    expect(await readdir(folder)).toEqual(['out']);
  });

  it.runIf(liesElsewhere('/dev/shm'))('gets it on another file system too', async () => {
    const far = await mkdtemp('/dev/shm/remuda-output-');
    try {
      await writeFile(path('part'), 'new');
      await finishFile(path('part'), join(far, 'out'), { overwrite: false });
      await writeFile(path('part'), 'newer');
      const again = finishFile(path('part'), join(far, 'out'), { overwrite: false });
      await expect(again).rejects.toMatchObject(refused('output_exists', far));
      expect(await readdir(far)).toEqual(['out']);
      expect(await readFile(join(far, 'out'), 'utf8')).toBe('new');
      await finishFile(path('part'), join(far, 'out'), { overwrite: true });
      expect(await readFile(join(far, 'out'), 'utf8')).toBe('newer');
      expect(await readdir(folder)).toEqual([]);
    } finally {
      await rm(far, { recursive: true });
    }
  });

  it('is finished by the next try when the first one died between two names', async () => {
    await writeFile(path('part'), 'new');
    await link(path('part'), path('out'));
    await finishFile(path('part'), path('out'), { overwrite: false });
    expect(await readdir(folder)).toEqual(['out']);
  });
});

function liesElsewhere(other: string): boolean {
  return existsSync(other) && statSync(other).dev !== statSync(tmpdir()).dev;
}

describe('a target', () => {
  const options = (overwrite: boolean): TargetOptions => ({
    overwrite,
    patience: new Patience(),
    signal: new AbortController().signal,
  });

  it('is looked at before anything runs', async () => {
    const check = (name: string, overwrite = false): Promise<void> =>
      checkTarget(parseTarget(path(name)), options(overwrite));
    await writeFile(path('out'), '');
    await expect(check('out')).rejects.toMatchObject(refused('output_exists', '--overwrite'));
    await check('out', true);
    await check('new');
    await expect(check('no/such/out')).rejects.toMatchObject(refused('invalid_request', 'mkdir -p'));
    await expect(check('out/below')).rejects.toMatchObject(refused('invalid_request', 'no folder'));
    await mkdir(path('folder'));
    await expect(check('folder', true)).rejects.toMatchObject(refused('invalid_request', 'is a folder'));
  });

  it('is a path or an object of S3, and nothing else', () => {
    expect(parseTarget('/a/b.csv')).toEqual({ kind: 'path', path: '/a/b.csv' });
    const s3 = parseTarget('s3://bucket/some/key.csv', { endpoint: 'http://127.0.0.1:1' });
    expect(s3).toEqual({
      kind: 's3',
      spec: { type: 's3', bucket: 'bucket', prefix: 'some/key.csv', endpoint: 'http://127.0.0.1:1' },
    });
    expect(targetText(s3)).toBe('s3://bucket/some/key.csv');
    for (const uri of ['https://a/b', 's3://bucket', 's3://bucket/folder/'])
      expect(() => parseTarget(uri)).toThrow(/expected/);
  });

  it('that is a path gets the file', async () => {
    const file = await open(path('part'), 'w');
    await file.write('all of it');
    await file.close();
    await deliver(path('part'), parseTarget(path('out')), options(false));
    expect(await readFile(path('out'), 'utf8')).toBe('all of it');
  });
});
