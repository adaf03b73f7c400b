import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isRunning, thisProcess, withLock } from '../setup/process-lock.mjs';
import {
  isBuilt,
  isInstalled,
  manifestStamp,
  readStamps,
  sourceStamp,
  workspaceFolders,
  writeStamps,
} from '../setup/stamps.mjs';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'remuda-stamps-test-'));
  put(
    'pnpm-workspace.yaml',
    'packages:\n  - apps/*\n  - "packages/*"\n  - infra # ours\n\nsavePrefix: ""\nother:\n  - no\n',
  );
  put('pnpm-lock.yaml', 'lockfileVersion: 9\n');
  put('package.json', '{}');
  put('packages/a/package.json', '{"dependencies":{"zod":"4"}}');
  put('packages/a/tsconfig.json', '{}');
  put('packages/a/src/deep/one.ts', 'export {}');
  put('infra/package.json', '{}');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, content: string) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

describe('set-up stamps', () => {
  it('cover the folders that pnpm-workspace.yaml lists', () => {
    expect(workspaceFolders(root)).toEqual(['packages/a', 'infra']);
  });

  it.each(['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', 'packages/a/package.json'])(
    'ask for an install when %s changes',
    (path) => {
      const before = manifestStamp(root);
      put(path, '{"changed":true}');
      expect(manifestStamp(root)).not.toBe(before);
    },
  );

  it('ask for no install when a manifest is only touched', () => {
    const before = manifestStamp(root);
    utimesSync(join(root, 'package.json'), 1, 1);
    expect(manifestStamp(root)).toBe(before);
  });

  it('ask for a build when a source changes, comes or goes, and not otherwise', () => {
    const stamps = [sourceStamp(root)];
    expect(sourceStamp(root)).toBe(stamps[0]);
    put('packages/a/src/deep/one.ts', 'export const one = 1');
    stamps.push(sourceStamp(root));
    put('packages/a/src/two.ts', '');
    stamps.push(sourceStamp(root));
    rmSync(join(root, 'packages/a/src/deep'), { recursive: true });
    stamps.push(sourceStamp(root));
    put('packages/a/tsconfig.json', '{"compilerOptions":{}}');
    stamps.push(sourceStamp(root));
    expect(new Set(stamps).size).toBe(stamps.length);
  });

  it('ask for a build when a build is missing', () => {
    expect(isBuilt(root)).toBe(false);
    put('packages/a/dist/.tsbuildinfo', '{}');
    expect(isBuilt(root)).toBe(true);
  });

  it('ask for an install when node_modules of the root or of a package with dependencies is missing', () => {
    expect(isInstalled(root)).toBe(false);
    put('node_modules/.modules.yaml', '');
    expect(isInstalled(root)).toBe(false);
    put('packages/a/node_modules/zod/package.json', '{}');
    expect(isInstalled(root)).toBe(true);
  });

  it('are empty when the file is missing or broken, and read back as written', () => {
    const path = join(root, '.remuda/setup.json');
    expect(readStamps(path)).toEqual({});
    writeStamps(path, { manifests: 'm', sources: 's' });
    expect(readStamps(path)).toEqual({ manifests: 'm', sources: 's' });
    put('.remuda/setup.json', '{"manif');
    expect(readStamps(path)).toEqual({});
  });
});

describe('the set-up lock', () => {
  it('lets one in at a time and is gone afterwards', async () => {
    const path = join(root, '.remuda/setup.lock');
    let inside = 0;
    const enter = () =>
      withLock(path, async () => {
        expect(++inside).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 20));
        inside--;
      });
    await Promise.all([enter(), enter(), enter()]);
    expect(() => rmSync(path)).toThrow(/ENOENT/);
  });

  it('is taken over from a holder that is dead, also when its process id is in use again', async () => {
    put('.remuda/setup.lock', JSON.stringify({ pid: process.pid, started: 'another time' }));
    expect(await withLock(join(root, '.remuda/setup.lock'), async () => 'mine')).toBe('mine');
  });

  it('is released when the work fails', async () => {
    const path = join(root, '.remuda/setup.lock');
    await expect(withLock(path, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(path, async () => 'again')).toBe('again');
  });

  it('knows a process by its start time, not by its id alone', () => {
    expect(isRunning(thisProcess())).toBe(true);
    expect(isRunning({ ...thisProcess(), started: 'another time' })).toBe(false);
  });
});
