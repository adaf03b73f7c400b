/**
 * The threads that instances live in, used again. Starting one costs some 200 ms of CPU before a model is even opened
 * (its modules are compiled and run anew), and a version that is loaded beside one that serves takes that time from
 * its runs. So a few threads stand ready for the next load: those whose model was unloaded, or new ones that are started
 * while nothing is being loaded.
 */
import { Worker } from 'node:worker_threads';
import { builtFile } from './built-file.js';

/** Each takes some 10 MB. */
const MOST_SPARE = 2;
/** After a load, and between two new threads: a start-up has better things to do. */
const FILL_AFTER_MS = 3_000;

export class InstanceThreads {
  readonly #spare: Worker[] = [];
  #filling: NodeJS.Timeout | undefined;

  /** A thread that holds no model and that nobody listens to. */
  take(): Worker {
    const thread = this.#spare.pop();
    if (!thread) return startThread();
    silence(thread);
    thread.ref();
    return thread;
  }

  /** The session in it must have been released. Resolves when it is kept, or has ended. */
  async giveBack(thread: Worker): Promise<void> {
    silence(thread);
    if (this.#spare.length >= MOST_SPARE) {
      await thread.terminate();
      return;
    }
    this.#keep(thread);
  }

  /** Starts spare threads, one after the other, once a while has passed without another call. */
  fillLater(): void {
    clearTimeout(this.#filling);
    this.#filling = setTimeout(() => {
      if (this.#spare.length >= MOST_SPARE) return;
      this.#keep(startThread());
      this.fillLater();
    }, FILL_AFTER_MS);
    this.#filling.unref();
  }

  #keep(thread: Worker): void {
    const forget = (): void => {
      const at = this.#spare.indexOf(thread);
      if (at >= 0) this.#spare.splice(at, 1);
    };
    thread.on('error', forget);
    thread.on('exit', forget);
    thread.unref();
    this.#spare.push(thread);
  }
}

/** By name: Node's own listeners on a worker, which keep its port open, must stay. */
function silence(thread: Worker): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
}

function startThread(): Worker {
  return new Worker(builtFile('./instance-thread.js', import.meta.url), { name: 'remuda-instance' });
}
