/**
 * Node processes of the bench: servers that say when they are ready and run until they are stopped, and tasks that
 * get one job and give one answer, both over IPC. Each has an environment of its own: nothing of the caller's
 * REMUDA_* settings reaches a measurement.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

const READY_TIMEOUT_MS = 60_000;
/** A process that does not stop softly by then is killed. */
const STOP_TIMEOUT_MS = 30_000;

export interface ServerOptions {
  script: string;
  env: Record<string, string>;
  /** Standard output and error are appended to it, as a process manager would. */
  logFile: string;
  execArgv?: string[];
}

export interface NodeServer {
  pid: number;
  url: string;
  /** SIGTERM, a wait, SIGKILL. Safe to call twice. */
  stop(): Promise<void>;
}

/** Starts a server and returns when it says `{ type: 'ready', url }`. @throws Error with the end of its log */
export async function startServer(options: ServerOptions): Promise<NodeServer> {
  const log = openSync(options.logFile, 'a');
  const child = fork(options.script, [], {
    env: { ...plainEnvironment(), NODE_ENV: 'production', ...options.env },
    stdio: ['ignore', log, log, 'ipc'],
    execArgv: options.execArgv ?? [],
  });
  closeSync(log);
  const url = await untilReady(child, options);
  return { pid: child.pid as number, url, stop: () => stopChild(child) };
}

/** Runs a task: sends it the job, resolves with its answer. The process is gone then. @throws Error with its message */
export function runTask<Answer>(script: URL, job: object): Promise<Answer> {
  const child = fork(script, [], {
    env: plainEnvironment(),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: [],
  });
  return new Promise<Answer>((resolve, reject) => {
    let answer: { value: Answer } | undefined;
    child.on('message', (message: { answer?: Answer; error?: string }) => {
      if (message.error !== undefined) reject(new Error(message.error));
      else answer = { value: message.answer as Answer };
    });
    child.on('exit', (code) => {
      if (answer) resolve(answer.value);
      else reject(new Error(`${script.pathname} ended with code ${code} before it answered`));
    });
    child.send(job);
  });
}

/** The other end of runTask: call it once in the script of a task. */
export function serveTask<Job, Answer>(work: (job: Job) => Promise<Answer>): void {
  // Whoever asked is gone: nobody wants the answer.
  process.once('disconnect', () => process.exit(1));
  process.once('message', async (job: Job) => {
    try {
      const answer = await work(job);
      process.send?.({ answer }, () => process.exit(0));
    } catch (error) {
      process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }, () =>
        process.exit(1),
      );
    }
  });
}

function plainEnvironment(): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR } = process.env;
  // The raw loops load the native library themselves: like Remuda, without its telemetry.
  return { PATH, HOME, ORT_DISABLE_TELEMETRY: '1', ...(TMPDIR ? { TMPDIR } : {}) };
}

function untilReady(child: ChildProcess, { script, logFile }: ServerOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void => {
      child.kill('SIGKILL');
      reject(new Error(`${script} ${reason}\n${readFileSync(logFile, 'utf8').slice(-2_000)}`));
    };
    const timer = setTimeout(() => fail(`was not ready after ${READY_TIMEOUT_MS} ms`), READY_TIMEOUT_MS);
    const ended = (code: number | null): void => {
      clearTimeout(timer);
      fail(`ended with code ${code} before it was ready`);
    };
    child.once('exit', ended);
    child.on('message', (message: { type?: string; url?: string }) => {
      if (message.type !== 'ready') return;
      clearTimeout(timer);
      child.off('exit', ended);
      resolve(message.url ?? '');
    });
  });
}

function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}
