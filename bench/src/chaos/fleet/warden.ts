/** The suite's side of the warden (warden-entry.ts), which cleans up after a suite that was killed or interrupted. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface WardenMessage {
  /** Leader of a process group to kill. */
  group?: number;
  /** File system to take off. */
  mount?: string;
  /** To be removed with all that is in it. */
  folder?: string;
}

export class Warden {
  readonly #child: ChildProcess;

  constructor() {
    // The build's file also where a test runner runs the sources.
    const entry = fileURLToPath(
      new URL('./warden-entry.js', import.meta.url).href.replace('/bench/src/', '/bench/dist/'),
    );
    this.#child = fork(entry, [], {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
    });
    this.#child.on('error', () => {});
    this.#child.unref();
    this.#child.channel?.unref();
  }

  watch(message: WardenMessage): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** When nothing is left to clean up. */
  async dismiss(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || !this.#child.pid) return;
    const gone = once(this.#child, 'exit');
    this.#child.ref();
    this.#child.kill('SIGKILL');
    await gone;
  }
}
