/**
 * Bulk jobs on this machine alone: a Redis and workers that coordinate and score, for as long as the command runs. What
 * is done lies in the journal beside the output, so the Redis keeps nothing on the disk. Whatever way it ends, it leaves
 * no process behind (guardian.ts).
 */
import { join } from 'node:path';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Keyspace } from '@remuda/core/store/keys';
import { ensureRedis, type RunningRedis } from '@remuda/infra/redis-launcher';
import { ChildApp } from '../up/child-app.js';
import { workerEnvironment } from '../up/child-environment.js';
import { Guardian } from '../up/guardian.js';
import { openLog, reopenLog } from '../up/log-file.js';
import { WorkerKeeper } from '../up/worker-keeper.js';
import { workerEntry } from '../workspace.js';
import type { BulkControl } from './bulk-control.js';
import type { LocalControl } from './local-control.js';
import type { ServedModel } from './sample-runner.js';

export interface LocalBulkOptions {
  /** The only one that is loaded. */
  model: string;
  modelsFolder: string;
  /** For the data of Redis and the logs. */
  folder: string;
  workers: number;
  keyspace: Keyspace;
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** A line for the person at the terminal. */
  say(line: string): void;
}

const loadControl = () => import('./local-control.js');

/** A worker that has not stopped by then is killed: above the hard limit of its own stop. */
const SOFT_STOP_MS = 35_000;

export class LocalBulk implements Service {
  readonly name = 'local bulk';
  readonly #options: LocalBulkOptions;
  #guardian: Guardian | undefined;
  #redis: RunningRedis | undefined;
  #workers: WorkerKeeper[] = [];
  #control: LocalControl | undefined;
  #launched: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: LocalBulkOptions) {
    this.#options = options;
  }

  /** Once it has started. */
  get control(): BulkControl {
    if (!this.#control) throw new Error('it has not started');
    return this.#control;
  }

  /** What the model takes and gives, as its workers have told. */
  served(version?: string): Promise<ServedModel> {
    if (!this.#control) throw new Error('it has not started');
    return this.#control.served(this.#options.model, version);
  }

  get logs(): string {
    return join(this.#options.folder, 'logs');
  }

  /** Resolves when every worker has loaded the model. `onProgress` hears what is waited for. */
  async start(onProgress: (waitingFor: string) => void = () => {}): Promise<void> {
    onProgress('Redis');
    this.#launched = this.#launch();
    await this.#launched;
    if (this.#stopping) return;
    onProgress(`${this.#options.model} to load`);
    void loadControl();
    await Promise.all(this.#workers.map(({ current }) => current.ready));
    if (this.#stopping) return;
    for (const worker of this.#workers) worker.keep();
    // Not before: what it knows of the fleet it reads when it begins.
    await this.#openControl();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  /** Ends the workers at once; a stop that is under way goes on with what is left. */
  kill(): void {
    for (const { current } of this.#workers) current.killGroup();
  }

  async #launch(): Promise<void> {
    const { folder, env, workers } = this.#options;
    const redisFolder = join(folder, 'redis');
    this.#guardian = new Guardian(redisFolder);
    this.#redis = await ensureRedis({
      // Its own, whatever the fleet of this machine uses.
      env: without(env, 'REDIS_URL'),
      dataDir: redisFolder,
      log: () => {},
      allowInstall: true,
      appendonly: false,
    });
    if (this.#stopping) return;
    this.#workers = Array.from({ length: workers }, (_, at) => this.#newWorker(at + 1));
  }

  async #openControl(): Promise<void> {
    const { keyspace, modelsFolder } = this.#options;
    const redisUrl = (this.#redis as RunningRedis).url;
    // Loaded while the workers load theirs.
    const { openLocalControl } = await loadControl();
    this.#control = await openLocalControl({
      redisUrl,
      keyspace,
      modelsFolder,
      filesFolder: this.#filesFolder,
    });
  }

  async #stopAll(): Promise<void> {
    // A launch under way is waited for: what it starts late would be left behind.
    await this.#launched?.catch(() => {});
    for (const worker of this.#workers) worker.release();
    const deadline = setTimeout(() => this.kill(), SOFT_STOP_MS);
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    clearTimeout(deadline);
    this.kill();
    await this.#control?.close();
    await this.#redis?.stop();
    await this.#guardian?.dismiss();
  }

  get #filesFolder(): string {
    return join(this.#options.folder, 'files');
  }

  #newWorker(number: number): WorkerKeeper {
    let open = openLog;
    const { cwd, say, workers } = this.#options;
    const logFile = join(this.logs, `worker-${number}.log`);
    return new WorkerKeeper({
      say,
      start: () => {
        const env = workerEnvironment(this.#environment(), number, workers);
        const log = open(logFile);
        // A worker that is started again goes on in its log.
        open = reopenLog;
        const child = new ChildApp({ name: `worker ${number}`, entry: workerEntry, env, cwd, logFile, log });
        this.#guardian?.watch(child.pid);
        return child;
      },
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const { env, model, modelsFolder } = this.#options;
    return {
      ...env,
      REDIS_URL: this.#redis?.url,
      REMUDA_MODELS: modelsFolder,
      REMUDA_WORKER_MODELS: model,
      REMUDA_WORKER_BULK_JOBS: '1',
      // The person who runs this may read and write whatever the command names.
      REMUDA_BULK_PATHS: '/',
      REMUDA_FILES: this.#filesFolder,
    };
  }
}

function without(env: NodeJS.ProcessEnv, name: string): NodeJS.ProcessEnv {
  const { [name]: _, ...rest } = env;
  return rest;
}
