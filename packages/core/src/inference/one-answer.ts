/**
 * A throw-away child process that is asked one thing and killed: for native work that may crash or hang, which then
 * takes down nothing else.
 */
import { fork } from 'node:child_process';
import { builtFile } from './built-file.js';

export interface OneAnswerOptions {
  /** Built file beside the module at `from` that answers the one message it gets. */
  entry: string;
  from: string;
  timeoutMs: number;
  /** Where the child's error output goes; inherit: a native library may print there. Default inherit. */
  stderr?: 'inherit' | 'ignore';
}

/** @throws Error that says how the process failed: "took longer than 100 ms", "ended with SIGSEGV before it answered" */
export async function oneAnswer<T>(question: unknown, options: OneAnswerOptions): Promise<T> {
  const { entry, from, timeoutMs, stderr = 'inherit' } = options;
  const child = fork(builtFile(entry, from), {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', stderr, 'ipc'],
    execArgv: [],
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      const fail = (what: string): void => reject(new Error(what));
      timer = setTimeout(() => fail(`took longer than ${timeoutMs} ms`), timeoutMs);
      child.once('message', (message) => resolve(message as T));
      child.once('error', (error) => fail(`could not be started: ${error.message}`));
      child.once('exit', (code, signal) => fail(`ended with ${signal ?? `code ${code}`} before it answered`));
      child.send(question as string);
    });
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
