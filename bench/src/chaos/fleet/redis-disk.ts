/**
 * The disk of the append-only file, which can be made full: a tmpfs of its own where this process may mount one, else a
 * limit on the size of the server's files (prlimit), which the server meets in the same way: its write fails.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How much the append-only file of a long run may take. */
const ROOM = '4g';
/** Left when the disk is made full, so that the server gets into the middle of something. */
const LEFT_BYTES = 16 * 1024;

export type DiskKind = 'tmpfs' | 'limit' | 'none';

export class RedisDisk {
  readonly folder: string;
  readonly kind: DiskKind;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    this.kind = mounted(folder) ? 'tmpfs' : has('prlimit') ? 'limit' : 'none';
  }

  /** Why it cannot be made full; undefined: it can. */
  get obstacle(): string | undefined {
    return this.kind === 'none' ? 'neither a tmpfs can be mounted nor is there prlimit' : undefined;
  }

  /** The mount that must be taken off at the end. */
  get mount(): string | undefined {
    return this.kind === 'tmpfs' ? this.folder : undefined;
  }

  fill(serverPid: number): void {
    const limit = this.#used() + LEFT_BYTES;
    if (this.kind === 'tmpfs') run('mount', ['-o', `remount,size=${limit}`, this.folder]);
    else run('prlimit', ['--pid', String(serverPid), `--fsize=${limit}:unlimited`]);
  }

  empty(serverPid: number): void {
    if (this.kind === 'tmpfs') run('mount', ['-o', `remount,size=${ROOM}`, this.folder]);
    // A server that has ended by it is started without.
    else
      spawnSync('prlimit', ['--pid', String(serverPid), '--fsize=unlimited:unlimited'], { stdio: 'ignore' });
  }

  remove(): void {
    if (this.kind === 'tmpfs') spawnSync('umount', ['-l', this.folder], { stdio: 'ignore' });
  }

  #used(): number {
    const files = readdirSync(this.folder, { recursive: true, encoding: 'utf8' });
    const sizes = files.map((name) => statSync(join(this.folder, name))).filter((stat) => stat.isFile());
    // The limit is on each file, the append-only file being the largest; on a tmpfs it is on their pages together.
    if (this.kind === 'limit') return Math.max(0, ...sizes.map(({ size }) => size));
    return sizes.reduce((sum, { size }) => sum + Math.ceil(size / 4096) * 4096, 4096);
  }
}

/**
 * A folder for the PATH with a redis-server that ignores SIGXFSZ, which would end it where a write should fail.
 * @param binary the real one
 */
export function limitableServer(folder: string, binary: string): string {
  mkdirSync(folder, { recursive: true });
  const script = join(folder, 'redis-server');
  writeFileSync(script, `#!/bin/sh\ntrap '' XFSZ\nexec "${binary}" "$@"\n`);
  chmodSync(script, 0o755);
  return folder;
}

function mounted(folder: string): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return (
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${ROOM}`, 'remuda-chaos', folder], { stdio: 'ignore' })
      .status === 0
  );
}

function has(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
}

function run(program: string, args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr.trim()}`);
}
