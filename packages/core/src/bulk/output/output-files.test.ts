/** Files that parts grow in, and that outputs end as: after crashes, on full disks, beside files that are there. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { link, mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Patience } from '../../repository/sources/patience.js';
import { DataFile } from './data-file.js';
import { FileSink, finishFile } from './file-sink.js';
import { checkTarget, deliver, parseTarget, type TargetOptions, targetText } from './output-target.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-output-'));
});
afterEach(() => rm(folder, { recursive: true }));

const path = (name: string): string => join(folder, name);
const refused = (code: string, text: string): object => ({ code, message: expect.stringContaining(text) });

describe('a data file', () => {
  it('knows its parts by where they are, whatever order they were appended in', async () => {
    const file = await DataFile.open(path('data'));
    const places = await Promise.all(['one', 'three', ''].map((text) => file.append(Buffer.from(text))));
    await file.sync();
    expect(places).toEqual([
      { offset: 0, length: 3 },
      { offset: 3, length: 5 },
      { offset: 8, length: 0 },
    ]);
    expect(Buffer.from(await file.read({ offset: 3, length: 5 })).toString()).toBe('three');
    await file.close();
  });

  it('goes on behind what the journal knows: the tail of a crash is cut off', async () => {
    await writeFile(path('data'), 'wholehalf a pa');
    const file = await DataFile.open(path('data'));
    await file.truncate(5);
    expect(await file.append(Buffer.from('next'))).toEqual({ offset: 5, length: 4 });
    await file.close();
    expect(await readFile(path('data'), 'utf8')).toBe('wholenext');
  });

  it('says so when it is shorter than what was written', async () => {
    const file = await DataFile.open(path('data'));
    await file.append(Buffer.from('abc'));
    await expect(file.truncate(4)).rejects.toMatchObject(refused('invalid_file', 'holds 3 bytes'));
    const beyond = file.read({ offset: 1, length: 9 });
    await expect(beyond).rejects.toMatchObject(refused('invalid_file', 'byte 3'));
    await file.close();
  });
});

describe('on a full disk', () => {
  it('a part that does not fit is not there, and the parts before it are', async () => {
    const child = fileURLToPath(
      new URL('../../../dist/bulk/output/full-disk-child.fixture.js', import.meta.url),
    );
    const script = 'ulimit -f 20; exec "$0" "$1" "$2"';
    const told = execFileSync('sh', ['-c', script, process.execPath, child, path('data')], {
      encoding: 'utf8',
    });
    const { appended, size, again, written } = JSON.parse(told) as Record<string, unknown>;
    expect([appended, again, written]).toEqual(['disk_full', 'done', 'disk_full']);
    expect(size).toBeGreaterThan(0);
    const bytes = await readFile(path('data'));
    expect(bytes.length).toBe((size as number) + 1);
    expect((size as number) % 700).toBe(0);
    for (let at = 0; at < (size as number); at++) if (bytes[at] !== Math.floor(at / 700)) expect(at).toBe(-1);
    expect(await readdir(folder)).toEqual(['data']);
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

  it.runIf(mayMount())(
    'a file system that fills up leaves whole parts, and goes on when there is room',
    async () => {
      const small = path('small');
      await mkdir(small);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', small]);
      try {
        await writeFile(join(small, 'ballast'), Buffer.alloc(30_000));
        const file = await DataFile.open(join(small, 'data'));
        await file.append(Buffer.alloc(10_000, 1));
        const failed = file.append(Buffer.alloc(40_000, 2));
        await expect(failed).rejects.toMatchObject(refused('disk_full', 'ENOSPC'));
        expect((await stat(file.path)).size).toBe(10_000);
        await rm(join(small, 'ballast'));
        expect(await file.append(Buffer.alloc(40_000, 2))).toEqual({ offset: 10_000, length: 40_000 });
        await file.close();
      } finally {
        execFileSync('umount', [small]);
      }
    },
  );
});

function mayMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const trial = mkdtempSync(join(tmpdir(), 'remuda-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', trial], { stdio: 'ignore' });
    execFileSync('umount', [trial]);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(trial);
  }
}

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
