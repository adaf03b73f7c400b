/**
 * The parent's side of the guardian (guardian-entry.ts): a small process that outlives a kill -9 of `remuda up` for as
 * long as it takes to see everything that `up` has started end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface GuardianMessage {
  /** Leader of a process group to watch over. */
  group: number;
}

export class Guardian {
  readonly #child: ChildProcess;

  /** @param redisFolder data folder of the Redis that may be owned by this process */
  constructor(redisFolder: string) {
    const entry = fileURLToPath(new URL('./guardian-entry.js', import.meta.url));
    this.#child = spawn(process.execPath, [entry, redisFolder, String(process.pid)], {
      // Detached: neither Ctrl-C nor the end of the terminal must reach it.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // Without a guardian only a kill -9 would leave something behind: no reason to stop.
    this.#child.on('error', () => {});
  }

  watch(group: number): void {
    if (group > 0 && this.#child.connected) this.#child.send({ group } satisfies GuardianMessage, () => {});
  }

  /** When nothing is left to guard. */
  async dismiss(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || !this.#child.pid) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
