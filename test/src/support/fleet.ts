/**
 * A whole Remuda for one test: a Redis of its own, the API and workers as the processes they are in production, and
 * the means to hurt them. Everything ends with stop(), also when a test has killed half of it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, type WriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { LifeEvent, LoggedEvent } from '@remuda/core/observability/events';
import { startPrivateRedis } from '@remuda/infra/redis-launcher';
import { Api } from './api.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

export interface FleetOptions {
  /** Folder of the model repository. */
  models: string;
  workers?: number;
  /** Where Redis is, when it is not the one that the fleet starts for itself. */
  redisUrl?: string;
  /** Environment of every process beside what the fleet needs. */
  env?: Record<string, string>;
}

export interface FleetProcess {
  pid: number;
  url: string;
  child: ChildProcess;
  /** Resolves with exit code or signal. */
  ended: Promise<number | NodeJS.Signals | null>;
}

type PrivateRedis = Awaited<ReturnType<typeof startPrivateRedis>>;

/** Only bounds a failing test. */
const PATIENCE_MS = 120_000;

export class Fleet {
  readonly api: Api;
  readonly folder: string;
  readonly redis: PrivateRedis;
  readonly workers: FleetProcess[] = [];
  apiProcess!: FleetProcess;
  readonly #moreApis: FleetProcess[] = [];
  readonly #options: FleetOptions;
  readonly #logs: string[] = [];
  readonly #streams: WriteStream[] = [];

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options, await startPrivateRedis({}));
    try {
      fleet.apiProcess = await fleet.#spawn('producer-api', { REMUDA_API_PORT: '0' });
      fleet.api.url = fleet.apiProcess.url;
      await Promise.all(Array.from({ length: options.workers ?? 1 }, () => fleet.addWorker()));
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  private constructor(options: FleetOptions, redis: PrivateRedis) {
    this.#options = options;
    this.redis = redis;
    this.folder = mkdtempSync(join(tmpdir(), 'remuda-fleet-'));
    this.api = new Api();
  }

  /** One more API process; it is stopped with the rest. */
  async addApi(env: Record<string, string> = {}): Promise<FleetProcess> {
    const api = await this.#spawn('producer-api', { REMUDA_API_PORT: '0', ...env });
    this.#moreApis.push(api);
    return api;
  }

  async addWorker(env: Record<string, string> = {}): Promise<FleetProcess> {
    const worker = await this.#spawn('worker', env);
    this.workers.push(worker);
    return worker;
  }

  /** Every log line of every process so far; the one that is just being written is left out. */
  logLines(): string[] {
    return this.#logs.flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(0, -1).filter(Boolean));
  }

  /** What the log has of an event so far, of all requests. */
  logged(event: LifeEvent): LoggedEvent[] {
    return this.logLines()
      .filter((line) => line.includes(`"${event}"`))
      .map((line) => JSON.parse(line) as LoggedEvent)
      .filter((line) => line.event === event);
  }

  /** Pids of the runner processes, as the heartbeats say. */
  async runnerPids(): Promise<number[]> {
    for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(100)) {
      const { workers } = await this.api.fleet();
      const pids = workers.flatMap(({ devices }) => devices.flatMap(({ runner_pid }) => runner_pid ?? []));
      // The API looks at the heartbeats again in a moment.
      if (pids.length > 0) return pids;
    }
    throw new Error('no worker has told of its runner');
  }

  async stop(): Promise<void> {
    const all = [...this.workers, ...this.#moreApis, this.apiProcess].filter(Boolean);
    for (const { child } of all) {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
    }
    await Promise.all(all.map((one) => endWithin(one, 30_000)));
    await this.redis.stop();
    for (const stream of this.#streams) stream.end();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #spawn(app: 'producer-api' | 'worker', env: Record<string, string>): Promise<FleetProcess> {
    const log = join(this.folder, `${app}-${this.#logs.length}.log`);
    const child = fork(join(root, 'apps', app, 'dist/main.js'), {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        ...processEnv(),
        REDIS_URL: this.#options.redisUrl ?? this.redis.url,
        REMUDA_MODELS: this.#options.models,
        REMUDA_FILES: join(this.folder, 'files'),
        ...this.#options.env,
        ...env,
      },
    });
    const stream = createWriteStream(log);
    this.#logs.push(log);
    this.#streams.push(stream);
    child.stdout?.pipe(stream, { end: false });
    child.stderr?.pipe(stream, { end: false });
    const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code));
    });
    const url = await readyUrl(child, ended, () => readFileSync(log, 'utf8').slice(-2_000));
    return { pid: child.pid as number, url, child, ended };
  }
}

/** What a child needs of the environment, and nothing that would configure it. */
function processEnv(): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR, REMUDA_TEST_MARK } = process.env;
  return {
    PATH,
    HOME,
    ...(TMPDIR ? { TMPDIR } : {}),
    ...(REMUDA_TEST_MARK ? { REMUDA_TEST_MARK } : {}),
  };
}

function readyUrl(child: ChildProcess, ended: Promise<unknown>, lastLines: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`not ready within ${PATIENCE_MS} ms\n${lastLines()}`)),
      PATIENCE_MS,
    );
    child.on('message', (message) => {
      const { type, url } = message as { type: string; url: string };
      if (type !== 'ready') return;
      clearTimeout(timer);
      resolve(url);
    });
    void ended.then((how) => {
      clearTimeout(timer);
      reject(new Error(`ended before it was ready (${how})\n${lastLines()}`));
    });
  });
}

async function endWithin({ child, ended }: FleetProcess, ms: number): Promise<void> {
  const timer = setTimeout(() => child.kill('SIGKILL'), ms);
  await ended;
  clearTimeout(timer);
}
