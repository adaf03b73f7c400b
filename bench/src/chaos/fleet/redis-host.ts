/**
 * The Redis of the run: append-only file synced before each answer (`always`), never rewritten, so that what is
 * acknowledged survives a kill -9 and the file tells everything. With `everysec` an acknowledged write may be lost to a
 * kill -9 while an fsync takes long: Redis then puts off the write itself.
 */
import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, type Redis } from '@remuda/core/store/redis';
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { findRedisServer } from '@remuda/infra/redis-process';
import { limitableServer, RedisDisk } from './redis-disk.js';
import type { Warden } from './warden.js';

export type Fsync = 'always' | 'everysec';

const RETRY_MS = 50;

export class RedisHost {
  readonly disk: RedisDisk;
  readonly fsync: Fsync;
  readonly #server: PrivateRedis;
  readonly #warden: Warden;
  /** Not through any proxy: for the suite itself. */
  readonly redis: Redis;
  #down = false;
  /** Called between the end of a server and the start of the next on the same file. */
  onRestart: () => void = () => {};

  static async start(folder: string, fsync: Fsync, warden: Warden): Promise<RedisHost> {
    const disk = new RedisDisk(join(folder, 'redis'));
    if (disk.mount) warden.watch({ mount: disk.mount });
    const binary = findRedisServer(process.env.PATH);
    const path = binary ? limitableServer(join(folder, 'bin'), binary) : process.env.PATH;
    const server = await startPrivateRedis({
      env: { ...process.env, PATH: path },
      allowInstall: true,
      dataDir: disk.folder,
      args: ['--appendfsync', fsync, '--auto-aof-rewrite-percentage', '0'],
    });
    warden.watch({ group: server.pid });
    return new RedisHost(disk, fsync, server, warden);
  }

  private constructor(disk: RedisDisk, fsync: Fsync, server: PrivateRedis, warden: Warden) {
    this.disk = disk;
    this.fsync = fsync;
    this.#server = server;
    this.#warden = warden;
    this.redis = connectRedis({ url: server.url, role: 'worker', name: 'chaos', onError: () => {} });
  }

  get port(): number {
    return this.#server.port;
  }

  get pid(): number {
    return this.#server.pid;
  }

  get up(): boolean {
    return !this.#down;
  }

  async kill9(): Promise<void> {
    this.#down = true;
    await this.#server.kill9();
  }

  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }

  /** Starts it again on its file, after it has ended by whatever; a running one is stopped softly before. */
  async restart(): Promise<void> {
    this.onRestart();
    await this.#server.restart();
    this.#warden.watch({ group: this.#server.pid });
    this.#down = false;
    await this.untilWritable();
  }

  /** For a stop of which the server is the author: it is down until restart(). */
  markDown(): void {
    this.#down = true;
  }

  /** Until it takes writes: loaded, not out of memory, its disk not full. */
  async untilWritable(): Promise<void> {
    for (;;) {
      const taken = await this.redis.set('chaos:writable', '1').catch(() => null);
      if (taken === 'OK') return;
      await sleep(RETRY_MS);
    }
  }

  /** @param keepIn where its files are copied to before its disk goes */
  async stop(keepIn?: string): Promise<void> {
    this.redis.disconnect();
    spawnSync('kill', ['-CONT', String(this.pid)], { stdio: 'ignore' });
    await this.#server.stop();
    if (keepIn !== undefined) cpSync(this.disk.folder, keepIn, { recursive: true });
    this.disk.remove();
  }
}
