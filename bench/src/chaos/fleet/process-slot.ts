/**
 * A place in the fleet for one API or worker process, which is filled again after each end. Each process leads a group
 * of its own with its runners in it, has a proxy of the slot between itself and Redis, and says when it is ready.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf, isCoordinator } from '../../rig/proc-stat.js';
import type { TcpProxy } from './tcp-proxy.js';
import type { Warden } from './warden.js';

export interface SlotOptions {
  /** worker-0, api-1: first part of the name in the fleet, and of the log file. */
  name: string;
  kind: 'worker' | 'api';
  logFile: string;
  proxy: TcpProxy;
  warden: Warden;
  /** Script of this life; an upgrade changes it. */
  script(): string;
  /** `life` counts the processes of the slot from 1 on. */
  env(life: number): Record<string, string>;
}

const READY_MS = 120_000;
const SOFT_STOP_MS = 45_000;

export class ProcessSlot {
  readonly #options: SlotOptions;
  #child: ChildProcess | undefined;
  #groups: number[] = [];
  #ended: Promise<void> = Promise.resolve();
  #life = 0;
  #ready = false;
  #stopped = false;
  /** Since when the present process is ready and runs. */
  readySince = 0;
  url = '';
  /** Milliseconds that the clock of the next process is off. */
  clockOffsetMs = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  get kind(): 'worker' | 'api' {
    return this.#options.kind;
  }

  get proxy(): TcpProxy {
    return this.#options.proxy;
  }

  /** Name of the present process in the fleet; another for each life. */
  get id(): string {
    return `${this.name}-${this.#life}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Runs, is ready, and does not stand still. */
  get serving(): boolean {
    return this.#ready && !this.#stopped;
  }

  get runnerPids(): number[] {
    return this.#children.filter((pid) => !isCoordinator(pid));
  }

  /** Of bulk jobs. */
  get coordinatorPids(): number[] {
    return this.#children.filter(isCoordinator);
  }

  /** Resolves when it is ready. @throws Error with the end of its log */
  async start(): Promise<void> {
    this.#life++;
    const { script, env, logFile, warden } = this.#options;
    const log = openSync(logFile, 'a');
    const child = fork(script(), [], {
      env: { ...plainEnvironment(), ...env(this.#life) },
      stdio: ['ignore', log, log, 'ipc'],
      execArgv: [],
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    this.#groups.push(child.pid as number);
    warden.watch({ group: child.pid as number });
    this.#ended = new Promise((resolve) => child.once('exit', () => resolve()));
    void this.#ended.then(() => {
      if (this.#child === child) this.#ready = false;
    });
    this.url = await this.#untilReady(child);
    this.readySince = Date.now();
    this.#ready = true;
  }

  async kill9(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#ended;
  }

  /** Asks it to end, and waits; what does not end is killed, and that is told. */
  async terminate(): Promise<'ended' | 'killed'> {
    this.#ready = false;
    this.#signal('SIGTERM');
    const ended = await Promise.race([
      this.#ended.then(() => true),
      sleep(SOFT_STOP_MS, false, { ref: false }),
    ]);
    if (ended) return 'ended';
    await this.kill9();
    return 'killed';
  }

  /** It and its runners stand still. */
  freeze(): void {
    this.#stopped = true;
    this.#signalGroup('SIGSTOP');
  }

  thaw(): void {
    this.#signalGroup('SIGCONT');
    this.#stopped = false;
    this.readySince = Date.now();
  }

  /** Ends whatever is left of any of its processes, at once. */
  async sweep(): Promise<void> {
    for (const group of this.#groups.splice(0)) killGroup(group);
    await this.#ended;
  }

  get #children(): number[] {
    return this.pid === 0 ? [] : childrenOf(this.pid);
  }

  #signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  #signalGroup(name: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, name);
    } catch {
      // It has ended meanwhile.
    }
  }

  #untilReady(child: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timer);
        child.kill('SIGKILL');
        reject(
          new Error(`${this.id} ${reason}\n${readFileSync(this.#options.logFile, 'utf8').slice(-2_000)}`),
        );
      };
      const timer = setTimeout(() => fail(`was not ready after ${READY_MS} ms`), READY_MS);
      child.once('exit', (code, signal) => fail(`ended with ${signal ?? code} before it was ready`));
      child.on('message', ({ type, url = '' }: { type?: string; url?: string }) => {
        if (type !== 'ready') return;
        clearTimeout(timer);
        resolve(url);
      });
    });
  }
}

function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Gone by itself.
  }
}

/** Nothing of the caller's own settings reaches the fleet. */
function plainEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR } = process.env;
  return { PATH, HOME, NODE_ENV: 'production', ...(TMPDIR ? { TMPDIR } : {}) };
}
