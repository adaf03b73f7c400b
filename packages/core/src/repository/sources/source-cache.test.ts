/** What holds for every kind of source: local folders, manifests that are written here, the lease, wrong specs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SourceManifest } from '@remuda/schemas';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../lifecycle/clock.js';
import { takeLease } from './folder-lease.js';
import { SourceCache } from './source-cache.js';
import { writeManifest } from './source-manifest.js';

const made: string[] = [];
afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true });
});

async function setup(files: Record<string, string> = {}): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'remuda-source-'));
  made.push(root);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

describe('a local folder', () => {
  it('is used where it is, whatever its name', async () => {
    const folder = await setup({ 'model.yaml': 'harness: onnx', '1/model.onnx': 'x', '3/other': '' });
    const cache = new SourceCache({ folder: join(await setup(), 'never-made') });
    expect(await cache.sync('m', { type: 'local', path: folder })).toEqual({
      folder,
      versions: ['1'],
      changed: [],
    });
  });

  it('that is no model is told why', async () => {
    const cache = new SourceCache({ folder: await setup() });
    const faulty = await setup({ 'model.yaml': 'harnes: onnx', '1/model.onnx': 'x' });
    await expect(cache.sync('m', { type: 'local', path: faulty })).rejects.toThrow(
      /model\.yaml:1: harnes: unknown/,
    );
    await expect(cache.sync('m', { type: 'local', path: '/no/such' })).rejects.toThrow(
      /the source of m, .*missing/,
    );
  });
});

describe('a spec', () => {
  it('is checked, and so is the name, which becomes a folder', async () => {
    const cache = new SourceCache({ folder: await setup() });
    await expect(cache.sync('../m', { type: 'local', path: '.' })).rejects.toThrow('"../m" is not a name');
    const spec = { type: 'http' as const, url: 'ftp://host/m' };
    await expect(cache.sync('m', spec)).rejects.toThrow('the source of m: url: expected an http://');
  });
});

describe('writeManifest', () => {
  it('lists each file of a model with size and sha256, itself and hidden ones left out', async () => {
    const folder = await setup({
      'model.yaml': 'harness: onnx',
      '1/model.onnx': 'abc',
      '1/golden/a.json': '',
      '.git/x': '',
    });
    const manifest = await writeManifest(folder, { model: 'm' });
    expect(manifest.model).toBe('m');
    expect(manifest.files.map(({ path, size }) => [path, size])).toEqual([
      ['1/golden/a.json', 0],
      ['1/model.onnx', 3],
      ['model.yaml', 13],
    ]);
    expect(manifest.files[1]?.sha256).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    const written = await readFile(join(folder, 'manifest.json'), 'utf8');
    expect(SourceManifest.parse(JSON.parse(written))).toEqual(manifest);
    expect(await writeManifest(folder, { model: 'm' })).toEqual(manifest);
    expect((await readdir(folder)).sort()).toEqual(['.git', '1', 'manifest.json', 'model.yaml']);
  });

  it('refuses a folder that is no model', async () => {
    await expect(writeManifest(await setup({ '1/model.onnx': '' }))).rejects.toThrow('has no model.yaml');
    await expect(writeManifest('/no/such')).rejects.toThrow(
      '/no/such cannot be read; give the folder of a model',
    );
  });
});

describe('the lease of a model', () => {
  const never = new AbortController().signal;

  it('is waited for, and given on', async () => {
    const path = join(await setup(), 'lease');
    const order: string[] = [];
    const first = await takeLease(path, systemClock, never);
    const second = takeLease(path, systemClock, never).then((lease) => {
      order.push('second');
      return lease;
    });
    // A second pause: the waiting one has looked and not got it.
    const { clock, paused } = watched();
    const third = takeLease(path, clock, never);
    await paused(2);
    order.push('first');
    await first.release();
    // Either of the two may get it next.
    await Promise.all([second, third].map(async (waiting) => (await waiting).release()));
    expect(order).toEqual(['first', 'second']);
    expect(await readdir(dirname(path))).toEqual([]);
  });

  it('of a dead process is taken over at once', async () => {
    const path = join(await setup(), 'lease');
    const dead = spawn(process.execPath, ['-e', '']);
    await once(dead, 'exit');
    const own = await takeLease(path, systemClock, never);
    const text = await readFile(path, 'utf8');
    await own.release();
    await writeFile(path, text.replace(`"pid":${process.pid}`, `"pid":${dead.pid}`));
    const { clock, paused } = watched();
    await (await takeLease(path, clock, never)).release();
    expect(paused.count()).toBe(0);
  });

  it('of a process elsewhere is taken over when its time has stood still', async () => {
    const path = join(await setup(), 'lease');
    await writeFile(path, JSON.stringify({ pid: 1, place: `not ${hostname()}`, nonce: 'x' }));
    const { clock, paused } = watched({ fast: true });
    let beats = 0;
    paused.each(async () => {
      // Alive for a while: no waiting is long enough.
      if (beats < 60) await utimes(path, new Date(), new Date(Date.now() + beats++ * 1000));
    });
    await (await takeLease(path, clock, never)).release();
    expect(beats).toBe(60);
    expect(await readdir(dirname(path))).toEqual([]);
  });

  it('is not waited for by one who is told to stop', async () => {
    const path = join(await setup(), 'lease');
    const first = await takeLease(path, systemClock, never);
    const stop = new AbortController();
    const { clock, paused } = watched();
    const second = takeLease(path, clock, stop.signal);
    await paused(1);
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    await first.release();
  });
});

interface Paused {
  /** Resolves after so many pauses in all. */
  (pauses: number): Promise<void>;
  count(): number;
  each(before: () => Promise<void>): void;
}

/** A clock that tells of the pauses made by it; a fast one makes them without waiting, and its time goes on. */
function watched({ fast = false } = {}): { clock: Clock; paused: Paused } {
  let pauses = 0;
  let now = 0;
  let before: () => Promise<void> = async () => undefined;
  const waiting: Array<[at: number, resolve: () => void]> = [];
  const clock: Clock = {
    now: () => (fast ? now : Date.now()),
    after(ms, callback) {
      pauses += 1;
      now += ms;
      for (const [at, resolve] of waiting) if (pauses >= at) resolve();
      if (!fast) return systemClock.after(ms, callback);
      void before().then(callback);
      return () => undefined;
    },
  };
  const paused = ((at: number) =>
    new Promise<void>((resolve) => {
      if (pauses >= at) resolve();
      else waiting.push([at, resolve]);
    })) as Paused;
  paused.count = () => pauses - 1;
  paused.each = (work) => {
    before = work;
  };
  return { clock, paused };
}
