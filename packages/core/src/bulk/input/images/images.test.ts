/** Images by reference: folders, globs and lists; what may be read, and that a reference that leads nowhere fails alone. */
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FileServer } from '../../../repository/sources/file-server.fixture.js';
import { CREDENTIALS, S3Server } from '../../../repository/sources/s3-server.fixture.js';
import { InputFolder, LARGE, piecesOf, readFile, rowsOf } from '../input.fixture.js';
import { openInput } from '../open-input.js';

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

const text = (value: unknown): string => Buffer.from(value as Uint8Array).toString();

describe('a folder', () => {
  it('is its images and those in its folders, in order, by their paths in it', async () => {
    const names = [
      'b.jpg',
      'a/z.PNG',
      'a/b/c.webp',
      'a.jpeg',
      'new\nline.png',
      'notes.txt',
      '.hidden.jpg',
      '.git/x.png',
    ];
    for (const name of names) await folder.write(`photos/${name}`, name);
    await mkdir(join(folder.path, 'photos/looped'), { recursive: true });
    await symlink(join(folder.path, 'photos'), join(folder.path, 'photos/looped/again'));
    const { rows, input } = await readFile(`${folder.path}/photos`, { format: 'images' });
    const paths = ['a.jpeg', 'a/b/c.webp', 'a/z.PNG', 'b.jpg', 'new\nline.png'];
    expect(rows.map(({ path }) => path)).toEqual(paths);
    expect(rows.map(({ image }) => text(image))).toEqual(paths);
    expect(input.totalRows).toBe(5);
    expect(input.columns).toEqual([
      { name: 'image', type: 'bytes' },
      { name: 'path', type: 'string' },
    ]);
  });

  it('is what it was when the job began, whatever comes into it', async () => {
    await folder.write('growing/a.png', 'a');
    await folder.write('growing/c.png', 'c');
    const options = {
      path: `${folder.path}/growing`,
      read: { format: 'images' as const },
      compression: 'none' as const,
      workFolder: `${folder.path}/work`,
    };
    await mkdir(options.workFolder);
    const first = await openInput(options);
    const pieces = await piecesOf(first, { ...LARGE, rows: 1 });
    await first.close();
    await folder.write('growing/b.png', 'b');
    await rm(`${folder.path}/growing/c.png`);
    const again = await openInput(options);
    expect(await piecesOf(again, { ...LARGE, rows: 1 })).toEqual(pieces);
    expect(again.totalRows).toBe(2);
    const { failures } = await rowsOf(again, pieces);
    expect(failures.get(1)?.message).toBe('line 2 (byte 17) c.png is not there; check the path');
    await again.close();
  });

  it('can be a glob, or one image', async () => {
    for (const name of ['x/1.jpg', 'x/y/2.jpg', 'x/y/3.png', 'x/4.txt'])
      await folder.write(`globs/${name}`, name);
    const glob = await readFile(`${folder.path}/globs/*/**/*.{jpg,txt}`, { format: 'images' });
    expect(glob.rows.map(({ path }) => path)).toEqual(['x/1.jpg', 'x/y/2.jpg']);
    const one = await readFile(`${folder.path}/globs/x/y/3.png`, { format: 'images' });
    expect(one.rows.map(({ path }) => path)).toEqual(['3.png']);
  });

  it('without images, or that is not there, is refused', async () => {
    await folder.write('empty/a.txt', '');
    await expect(readFile(`${folder.path}/empty`, { format: 'images' })).rejects.toThrow(
      /holds no images; expected files that end with \.jpg/,
    );
    await expect(readFile(`${folder.path}/none`, { format: 'images' })).rejects.toMatchObject({
      code: 'file_not_found',
    });
    await expect(readFile(`${folder.path}/none/*.jpg`, { format: 'images' })).rejects.toMatchObject({
      code: 'file_not_found',
    });
  });

  it('goes in pieces that fit into memory, whatever the limits allow', async () => {
    for (let i = 0; i < 300; i += 1) await folder.write(`many/${i}.png`, '');
    const { pieces } = await readFile(
      `${folder.path}/many`,
      { format: 'images' },
      { limits: { ...LARGE, multipleOf: 32 } },
    );
    expect(pieces.map(({ rows }) => rows)).toEqual([256, 44]);
  });
});

describe('a list', () => {
  it('names paths from its own folder on, with ids before a tab or in objects', async () => {
    await folder.write('list/in/a.png', 'A');
    await folder.write('list/b.png', 'B');
    const lines = [
      'in/a.png',
      'first\tb.png',
      '{"custom_id":"x","image":"b.png"}',
      `${folder.path}/list/b.png`,
      '',
    ];
    const path = await folder.write('list/images.txt', lines.join('\r\n'));
    const { rows, input, failures } = await readFile(path, { format: 'list' });
    expect(failures.size).toBe(0);
    expect(rows.map(({ image }) => text(image))).toEqual(['A', 'B', 'B', 'B']);
    expect(rows.map(({ custom_id }) => custom_id)).toEqual([null, 'first', 'x', null]);
    expect(input.columns.map(({ name }) => name)).toEqual(['image', 'custom_id', 'path']);
  });

  it('leads to no place outside of the folders that may be read, by dots, by links or straight', async () => {
    await folder.write('secret/key.png', 'secret');
    await folder.write('roots/ok.png', 'ok');
    await symlink(`${folder.path}/secret/key.png`, `${folder.path}/roots/link.png`);
    await symlink(`${folder.path}/secret`, `${folder.path}/roots/dir`);
    const references = [
      'ok.png',
      '../secret/key.png',
      `${folder.path}/secret/key.png`,
      'link.png',
      'dir/key.png',
      '../roots2/x.png',
      '/etc/none',
    ];
    const path = await folder.write('roots/images.txt', references.join('\n'));
    const { rows, failures } = await readFile(path, { format: 'list' });
    expect(rows.map(({ image }) => image && text(image))).toEqual(['ok', null, null, null, null, null, null]);
    for (const { message } of failures.values())
      expect(message).toMatch(/lies outside of the folders that may be read/);
    const told = await readFile(path, { format: 'list', roots: [folder.path] });
    expect(told.rows.map(({ image }) => image && text(image)).slice(0, 5)).toEqual([
      'ok',
      'secret',
      'secret',
      'secret',
      'secret',
    ]);
    const anywhere = await readFile(path, { format: 'list', roots: null });
    expect(anywhere.failures.get(6)?.message).toMatch(/\/etc\/none is not there/);
  });

  it('leads to no uploaded file, though the folder of those lies in one that may be read', async () => {
    await folder.write('all/files/theirs.png', 'theirs');
    await folder.write('all/own.png', 'own');
    const path = await folder.write('all/images.txt', 'own.png\nfiles/theirs.png');
    const read = {
      format: 'list' as const,
      roots: [`${folder.path}/all`],
      closed: `${folder.path}/all/files`,
    };
    const { rows } = await readFile(path, read);
    expect(rows.map(({ image }) => image && text(image))).toEqual(['own', null]);
  });

  it('fails row by row where a line is no reference, or leads to no file', async () => {
    const lines = ['id\t', '{"url":1}', '{"a":2}', 'ftp://host/x.png', 'missing.png', '.', '{"url":'];
    const path = await folder.write('bad/list.txt', lines.join('\n'));
    const { failures, raw } = await readFile(path, { format: 'list' });
    expect([...failures.entries()].sort(([a], [b]) => a - b).map(([, { message }]) => message)).toEqual([
      expect.stringMatching(/^line 1 \(byte 0\) has no reference; expected a path/),
      expect.stringMatching(/^line 2 .* is 1, where a reference was expected/),
      expect.stringMatching(/^line 3 .* has 0 of "url", "path" and "image"/),
      expect.stringMatching(/^line 4 .* "ftp:" is no kind of reference; expected a path/),
      expect.stringMatching(/^line 5 .* missing\.png is not there; check the path/),
      expect.stringMatching(/^line 6 .* is no file/),
      expect.stringMatching(/^line 7 .* is not valid JSON/),
    ]);
    expect(raw[4]).toEqual({ path: 'missing.png' });
  });

  it('can be the file of the errors of another job', async () => {
    await folder.write('again/a.png', 'A');
    const line = {
      row: 41,
      custom_id: 'k',
      code: 'invalid_row',
      message: 'm',
      input: { custom_id: 'k', path: 'a.png' },
    };
    const path = await folder.write('again/errors.jsonl', JSON.stringify(line));
    const { rows, rowNumbers } = await readFile(path, { format: 'list' });
    expect(rows[0]).toMatchObject({ custom_id: 'k', path: 'a.png' });
    expect(rowNumbers).toEqual([41]);
  });
});

describe('addresses', () => {
  it('are fetched, redirects too; a bad answer fails its row alone', async () => {
    server.files.set('/a.png', Buffer.from('remote'));
    server.files.set('/flaky.png', Buffer.from('in the end'));
    server.faults.set('/moved.png', [{ kind: 'redirect', location: '/a.png' }]);
    server.faults.set('/flaky.png', [{ kind: 'status', status: 503 }]);
    const names = ['a.png', 'moved.png', 'flaky.png', 'none.png?token=abc'];
    const path = await folder.write('urls.txt', names.map((name) => `${server.url}/${name}`).join('\n'));
    const { rows, failures, input } = await readFile(path, { format: 'list', allowed: '127.0.0.1' });
    expect(rows.map(({ image }) => image && text(image))).toEqual(['remote', 'remote', 'in the end', null]);
    expect(rows[0]?.url).toBe(`${server.url}/a.png`);
    expect(input.columns.map(({ name }) => name)).toEqual(['image', 'url']);
    expect(failures.get(3)?.message).toMatch(
      /^line 4 .*none\.png\?… could not be fetched: .* the server answered 404/,
    );
    expect(failures.get(3)?.message).not.toContain('abc');
  });

  it('that are not public are not asked, by their number, their name or a redirect, unless they are allowed', async () => {
    server.faults.set('/inner.png', [{ kind: 'redirect', location: `http://127.0.0.2:1/a.png` }]);
    const before = server.requests.length;
    const path = await folder.write(
      'private.txt',
      `${server.url}/a.png\nhttp://localhost:1/x.png\n${server.url}/inner.png`,
    );
    const { failures } = await readFile(path, { format: 'list' });
    expect(failures.size).toBe(3);
    for (const { message } of failures.values()) expect(message).toMatch(/may not be fetched/);
    expect(server.requests.length).toBe(before);
    const some = await readFile(path, { format: 'list', allowed: '127.0.0.1' });
    expect(some.failures.get(2)?.message).toMatch(/127\.0\.0\.2:1\/a\.png may not be fetched/);
  });

  it('of S3 are read with the endpoint of the job', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey);
    const s3 = await S3Server.start();
    try {
      await s3.put('in/a b.png', 'object');
      const path = await folder.write('s3.txt', 's3://models/in/a b.png\ns3://models/none.png\ns3://models');
      const { rows, failures } = await readFile(path, { format: 'list', s3: { endpoint: s3.endpoint } });
      expect(text(rows[0]?.image)).toBe('object');
      expect(failures.get(1)?.message).toMatch(
        /s3:\/\/models\/none\.png could not be fetched: .*there is no such object/,
      );
      expect(failures.get(2)?.message).toMatch(/expected s3:\/\/bucket\/key/);
    } finally {
      await s3.stop();
      vi.unstubAllEnvs();
    }
  });
});

it('a listing that cannot be written says why', async () => {
  await folder.write('full/a.png', '');
  await writeFile(`${folder.path}/no-folder`, '');
  const options = {
    path: `${folder.path}/full`,
    read: { format: 'images' as const },
    compression: 'none' as const,
  };
  await expect(openInput({ ...options, workFolder: `${folder.path}/none` })).rejects.toThrow(
    /cannot be written: .*; check the folder/,
  );
});
