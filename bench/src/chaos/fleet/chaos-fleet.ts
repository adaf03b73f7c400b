/**
 * The fleet that is hurt: a Redis, API and worker processes with a proxy between each and Redis, the small models, all in
 * one temporary folder. Owns them all: after `stop` nothing is left, and a warden sees to that where stop never comes.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeRepository, ROOT } from '../../rig/bench-models.js';
import type { BulkPlace } from '../../rig/bulk-desk.js';
import { ProcessSlot } from './process-slot.js';
import { type Fsync, RedisHost } from './redis-host.js';
import { TcpProxy } from './tcp-proxy.js';
import { Warden } from './warden.js';

export const KEY_PREFIX = 'chaos';

export interface ChaosFleetOptions {
  workers: number;
  apis: number;
  lockMs: number;
  fsync?: Fsync;
  /** Settings of every process of this build beside what the fleet needs. */
  env?: Record<string, string>;
  /** Of the workers alone, and of the APIs alone. */
  workerEnv?: Record<string, string>;
  apiEnv?: Record<string, string>;
  /** Root of an older build that all processes begin with; upgrade() replaces them one by one. */
  oldBuild?: string;
  /** How far the clocks of the workers are off at their start; default 0. */
  clockOffsetMs?: number;
  /** Leave the folder in place. */
  keep?: boolean;
  /** Fills the model repository; default the small models of the suite. */
  layModels?(folder: string): Promise<void>;
  /** Modules of this build to preload into every process. */
  preload?: readonly string[];
}

/** Longer than any run: the records are looked at in the end. */
const RESULT_TTL_S = 7 * 24 * 3600;
const STARTS = 3;
/** Of this build: its sinks are on this machine, and 75 hours of attempts are pressed into two minutes. */
const WEBHOOK_ENV = { REMUDA_WEBHOOK_ALLOW: '127.0.0.1' };
const DELIVERY_ENV = {
  REMUDA_WORKER_WEBHOOK_SCHEDULE_S: '0,0.2,0.5,1,1,2,2,3,3,5,5,5,5,5,10,10,10,15,15,15',
};

export class ChaosFleet {
  readonly folder: string;
  readonly options: ChaosFleetOptions;
  readonly redis: RedisHost;
  readonly workers: ProcessSlot[] = [];
  readonly apis: ProcessSlot[] = [];
  readonly #warden: Warden;
  readonly #upgraded = new Set<ProcessSlot>();
  readonly #proxies: TcpProxy[] = [];

  static async start(options: ChaosFleetOptions): Promise<ChaosFleet> {
    const warden = new Warden();
    const folder = mkdtempSync(join(tmpdir(), 'remuda-chaos-'));
    if (!options.keep) warden.watch({ folder });
    await (options.layModels ?? layModels)(join(folder, 'models'));
    const redis = await RedisHost.start(folder, options.fsync ?? 'always', warden);
    const fleet = new ChaosFleet(folder, options, redis, warden);
    try {
      await fleet.#startAll();
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  private constructor(folder: string, options: ChaosFleetOptions, redis: RedisHost, warden: Warden) {
    this.folder = folder;
    this.options = options;
    this.redis = redis;
    this.#warden = warden;
  }

  /** Workers first: the order of an upgrade. */
  get processes(): ProcessSlot[] {
    return [...this.workers, ...this.apis];
  }

  get redisFolder(): string {
    return this.redis.disk.folder;
  }

  /** For those who ask after bulk jobs. */
  get bulkPlace(): BulkPlace {
    const redisUrl = `redis://127.0.0.1:${this.redis.port}`;
    const [models, files] = [join(this.folder, 'models'), join(this.folder, 'files')];
    return { redisUrl, keyPrefix: KEY_PREFIX, models, files };
  }

  /** Whether it runs this build, and not the older one. */
  isCurrent(slot: ProcessSlot): boolean {
    return this.options.oldBuild === undefined || this.#upgraded.has(slot);
  }

  /** From its next start on it runs this build. */
  upgrade(slot: ProcessSlot): void {
    this.#upgraded.add(slot);
  }

  /** Starts what has ended, as whoever keeps processes running would: more than once where need be. */
  async restart(slot: ProcessSlot): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await slot.start();
      } catch (error) {
        if (attempt === STARTS) throw error;
      }
    }
  }

  /** While it is held, no run of the model `held` ends on this worker. */
  hold(worker: ProcessSlot, held: boolean): void {
    const file = join(this.folder, 'models/held', `hold-${worker.pid}`);
    if (held) writeFileSync(file, '');
    else rmSync(file, { force: true });
  }

  logOf(slot: ProcessSlot): string {
    return readFileSync(this.#logFile(slot.name), 'utf8');
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((slot) => slot.sweep()));
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
    await this.redis.stop(this.options.keep ? join(this.folder, 'redis-kept') : undefined);
    if (!this.options.keep) rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    await this.#warden.dismiss();
  }

  async #startAll(): Promise<void> {
    mkdirSync(join(this.folder, 'logs'));
    for (let i = 0; i < this.options.workers; i++) this.workers.push(await this.#slot('worker', i));
    for (let i = 0; i < this.options.apis; i++) this.apis.push(await this.#slot('api', i));
    await Promise.all(this.processes.map((slot) => slot.start()));
  }

  async #slot(kind: 'worker' | 'api', number: number): Promise<ProcessSlot> {
    const name = `${kind}-${number}`;
    const proxy = await TcpProxy.start(this.redis.port);
    this.#proxies.push(proxy);
    const slot: ProcessSlot = new ProcessSlot({
      ...{ name, kind, proxy, warden: this.#warden, logFile: this.#logFile(name) },
      script: () =>
        join(
          this.isCurrent(slot) ? ROOT : (this.options.oldBuild as string),
          `apps/${kind === 'api' ? 'producer-api' : 'worker'}/dist/main.js`,
        ),
      env: (life) => this.#environment(slot, `${name}-${life}`),
    });
    if (kind === 'worker') slot.clockOffsetMs = this.options.clockOffsetMs ?? 0;
    return slot;
  }

  #environment(slot: ProcessSlot, id: string): Record<string, string> {
    // An older build refuses settings that it does not know.
    const { env, workerEnv, apiEnv } = this.isCurrent(slot) ? this.#settings() : {};
    const shared = {
      REDIS_URL: `redis://127.0.0.1:${slot.proxy.port}`,
      REMUDA_KEY_PREFIX: KEY_PREFIX,
      REMUDA_MODELS: join(this.folder, 'models'),
      REMUDA_MODEL_CACHE: join(this.folder, 'cache'),
      ...this.#hooks(slot),
      ...env,
    };
    if (slot.kind === 'api')
      return { ...shared, REMUDA_API_PORT: '0', REMUDA_API_RESULT_TTL_S: String(RESULT_TTL_S), ...apiEnv };
    return {
      ...shared,
      REMUDA_WORKER_ID: id,
      REMUDA_WORKER_LOCK_MS: String(this.options.lockMs),
      REMUDA_WORKER_INSTANCES: '1',
      ...workerEnv,
    };
  }

  #settings(): Pick<ChaosFleetOptions, 'env' | 'workerEnv' | 'apiEnv'> {
    const { env, workerEnv, apiEnv } = this.options;
    const { files } = this.bulkPlace;
    const bulk = { REMUDA_FILES: files, REMUDA_BULK_PATHS: this.folder };
    return { env: { ...WEBHOOK_ENV, ...bulk, ...env }, workerEnv: { ...DELIVERY_ENV, ...workerEnv }, apiEnv };
  }

  #hooks(slot: ProcessSlot): Record<string, string> {
    const preload = [...(this.options.preload ?? []), ...(slot.clockOffsetMs === 0 ? [] : ['clock-offset'])];
    if (preload.length === 0) return {};
    const hooks = preload.map((name) => `--import=${join(ROOT, 'bench/dist/chaos/hooks', `${name}.js`)}`);
    return { NODE_OPTIONS: hooks.join(' '), CHAOS_CLOCK_OFFSET_MS: String(slot.clockOffsetMs) };
  }

  #logFile(name: string): string {
    return join(this.folder, 'logs', `${name}.log`);
  }
}

/** held: 50 ms a run, and can be held. add: the answer is no input. fail-on-mark: the items that are to fail do. */
async function layModels(folder: string): Promise<void> {
  await makeRepository(folder, { tiny: ['add', 'fail-on-mark'] });
  const script = new URL('../../../../test/models/held-model.mjs', import.meta.url).href;
  const { makeHeldModel } = (await import(script)) as { makeHeldModel(folder: string): Promise<void> };
  const all = join(folder, '..', 'all-models');
  await makeHeldModel(all);
  await cp(join(all, 'held'), join(folder, 'held'), { recursive: true });
  await rm(all, { recursive: true });
}
