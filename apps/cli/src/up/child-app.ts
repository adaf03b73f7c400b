/**
 * One child of `remuda up`: the API or a worker. It leads a process group of its own, so a terminal's Ctrl-C reaches
 * `up` alone and killing the group also ends its runners; the IPC channel tells `up` that it is ready, and tells it
 * that `up` is gone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { endHint } from './end-hint.js';
import { closeLog, lastTrouble } from './log-file.js';

export interface ChildAppOptions {
  /** For people: "API", "worker 2". */
  name: string;
  /** Script to run. */
  entry: string;
  env: NodeJS.ProcessEnv;
  cwd: string;
  logFile: string;
  /** Descriptor of the open log; closed here. */
  log: number;
}

export interface ChildEnd {
  /** "code 1", "SIGKILL" */
  how: string;
}

const SHOWN_LOG_LINES = 5;

export class ChildApp {
  readonly name: string;
  /** The address it says it answers at. Rejects when it ends before. */
  readonly ready: Promise<string>;
  readonly ended: Promise<ChildEnd>;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  #swept = false;

  constructor({ name, entry, env, cwd, logFile, log }: ChildAppOptions) {
    this.name = name;
    this.#logFile = logFile;
    this.#child = spawn(process.execPath, [entry], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeLog(log);
    this.ended = endOf(this.#child);
    this.ready = this.#readiness();
    // Whoever waits for it sees the rejection; where nobody does, it is no unhandled one.
    this.ready.catch(() => {});
  }

  /** 0 when it could not be started at all. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Asks for an orderly stop. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** Ends it and whatever it started, at once. */
  killGroup(): void {
    // Once, after the end: later the id may be that of somebody else's group.
    if (!this.pid || this.#swept) return;
    this.#swept = this.#child.exitCode !== null || this.#child.signalCode !== null;
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch {
      // The whole group is gone already.
    }
  }

  /** Which one, how it ended, and where its log is, with what it says of trouble. */
  describeEnd({ how }: ChildEnd): string {
    const trouble = lastTrouble(this.#logFile, SHOWN_LOG_LINES);
    const says = trouble.length > 0 ? ', which says:' : '';
    const lines = trouble.map((line) => `\n    ${line}`).join('');
    const hint = endHint(this.name, trouble);
    return `${this.name} ended with ${how}; its log is ${this.#logFile}${says}${lines}${hint && `\n  ${hint}`}`;
  }

  #readiness(): Promise<string> {
    const said = new Promise<string>((resolve) => {
      this.#child.on('message', (message: { type?: string; url?: string }) => {
        if (message?.type === 'ready') resolve(message.url ?? '');
      });
    });
    const ended = this.ended.then((end): never => {
      throw new Error(this.describeEnd(end));
    });
    return Promise.race([said, ended]);
  }
}

function endOf(child: ChildProcess): Promise<ChildEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      // Also emitted when a signal or message could not be sent to a child that runs on.
      if (child.pid === undefined) resolve({ how: error.message });
    });
    child.once('exit', (code, signal) => resolve({ how: signal ?? `code ${code}` }));
  });
}
