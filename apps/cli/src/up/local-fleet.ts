/**
 * A fleet on this machine: Redis, the API and N workers as child processes. Stopped in the order in which work flows
 * out of it: the API (answers what it has), the workers (finish or hand back), Redis (writes its file). A Service whose
 * `kill` makes a stop that is under way a hard one.
 */
import { join } from 'node:path';
import type { Service } from '@remuda/core/lifecycle/service';
import { ensureRedis, type RunningRedis } from '@remuda/infra/redis-launcher';
import { apiEntry, type Project, workerEntry } from '../workspace.js';
import { ChildApp } from './child-app.js';
import { apiEnvironment, workerEnvironment } from './child-environment.js';
import { Guardian } from './guardian.js';
import { openLog, reopenLog } from './log-file.js';
import { claimState, type StateClaim } from './state-owner.js';
import { WorkerKeeper } from './worker-keeper.js';

export interface LocalFleetOptions {
  project: Project;
  modelsFolder: string;
  workers: number;
  /** undefined: as REMUDA_API_PORT says. */
  apiPort: number | undefined;
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** A line for the person at the terminal. */
  say(line: string): void;
}

/** A child that has not stopped by then is killed: above the hard limits of the children's own stops. */
const SOFT_STOP_MS = 35_000;

export class LocalFleet implements Service {
  readonly name = 'fleet';
  readonly #options: LocalFleetOptions;
  #guardian: Guardian | undefined;
  #claim: StateClaim | undefined;
  #launched: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #redis: RunningRedis | undefined;
  #api: ChildApp | undefined;
  #workers: WorkerKeeper[] = [];
  #apiUrl = '';
  #fail!: (error: Error) => void;
  #listens!: (url: string) => void;
  /** The address of the API as soon as it answers, while workers may still load their models. */
  readonly apiListens: Promise<string>;
  /** Rejects when the fleet cannot go on: the API has ended unasked. */
  readonly failed: Promise<never>;

  constructor(options: LocalFleetOptions) {
    this.#options = options;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => {});
    this.apiListens = new Promise((resolve) => {
      this.#listens = resolve;
    });
  }

  /** http://host:port once it has started. */
  get apiUrl(): string {
    return this.#apiUrl;
  }

  /** For people: where the logs are. */
  get logs(): string {
    return this.#claim?.heldBy === undefined ? this.#options.project.logsFolder : this.#logFile('*');
  }

  /** Of the workers that run now. */
  get workerPids(): number[] {
    return this.#workers.map(({ current }) => current.pid);
  }

  get redisUrl(): string {
    return this.#redis?.url ?? '';
  }

  /** Resolves when the API and every worker are ready. `onProgress` hears what is waited for. */
  async start(onProgress: (waitingFor: string) => void = () => {}): Promise<void> {
    onProgress('Redis');
    this.#launched = this.#launch();
    await this.#launched;
    if (this.#stopping || !this.#api) return;
    await this.#untilReady(this.#api, onProgress);
    this.#keepRunning(this.#api);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  /** Ends the children at once; a stop that is under way goes on with what is left. */
  kill(): void {
    for (const child of this.#children()) child.killGroup();
  }

  async #launch(): Promise<void> {
    const { env, project, say, workers } = this.#options;
    await this.#claimState();
    this.#guardian = new Guardian(project.redisFolder);
    this.#redis = await ensureRedis({ env, dataDir: project.redisFolder, log: say, allowInstall: true });
    if (this.#stopping) return;
    this.#api = this.#spawn('API', 'api', apiEntry, this.#apiEnvironment(), openLog);
    this.#workers = Array.from({ length: workers }, (_, at) => this.#newWorker(at + 1));
  }

  async #claimState(): Promise<void> {
    const { project, say } = this.#options;
    this.#claim = await claimState(project.stateFolder);
    const { heldBy } = this.#claim;
    if (heldBy === undefined) return;
    say(`Another \`remuda up\` (process ${heldBy}) uses ${project.stateFolder}.`);
    say(`The logs of this one are ${this.#logFile('*')}.`);
  }

  async #untilReady(api: ChildApp, onProgress: (waitingFor: string) => void): Promise<void> {
    const waiting = new Set([api, ...this.#workers.map((worker) => worker.current)]);
    const tell = () => onProgress([...waiting].map((child) => child.name).join(', '));
    tell();
    await Promise.all(
      [...waiting].map(async (child) => {
        const url = await child.ready;
        if (child === api) this.#announce(url);
        waiting.delete(child);
        tell();
      }),
    );
  }

  #announce(url: string): void {
    this.#apiUrl = url;
    this.#listens(url);
  }

  #keepRunning(api: ChildApp): void {
    for (const worker of this.#workers) worker.keep();
    void api.ended.then((end) => {
      if (!this.#stopping) this.#fail(new Error(api.describeEnd(end)));
    });
  }

  async #stopAll(): Promise<void> {
    // A launch under way is waited for: what it starts late would be left behind.
    await this.#launched?.catch(() => {});
    for (const worker of this.#workers) worker.release();
    const deadline = setTimeout(() => this.kill(), SOFT_STOP_MS);
    this.#api?.terminate();
    await this.#api?.ended;
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    clearTimeout(deadline);
    // Whatever a child has left of its own.
    this.kill();
    await this.#redis?.stop();
    await this.#guardian?.dismiss();
    this.#claim?.release();
  }

  #children(): ChildApp[] {
    return [...(this.#api ? [this.#api] : []), ...this.#workers.map((worker) => worker.current)];
  }

  #newWorker(number: number): WorkerKeeper {
    let open = openLog;
    return new WorkerKeeper({
      say: this.#options.say,
      start: () => {
        const env = workerEnvironment(this.#sharedEnvironment(), number, this.#options.workers);
        const child = this.#spawn(`worker ${number}`, `worker-${number}`, workerEntry, env, open);
        // A worker that is started again goes on in its log.
        open = reopenLog;
        return child;
      },
    });
  }

  #spawn(
    name: string,
    fileName: string,
    entry: string,
    env: NodeJS.ProcessEnv,
    open: (path: string) => number,
  ): ChildApp {
    const logFile = this.#logFile(fileName);
    const child = new ChildApp({ name, entry, env, cwd: this.#options.cwd, logFile, log: open(logFile) });
    this.#guardian?.watch(child.pid);
    return child;
  }

  /** The logs of another living `up` in the same folder stay as they are: ours have names of their own. */
  #logFile(name: string): string {
    const suffix = this.#claim?.heldBy === undefined ? '' : `-${process.pid}`;
    return join(this.#options.project.logsFolder, `${name}${suffix}.log`);
  }

  #apiEnvironment(): NodeJS.ProcessEnv {
    return apiEnvironment(this.#sharedEnvironment(), this.#options.apiPort);
  }

  #sharedEnvironment(): NodeJS.ProcessEnv {
    return { ...this.#options.env, REDIS_URL: this.redisUrl, REMUDA_MODELS: this.#options.modelsFolder };
  }
}
