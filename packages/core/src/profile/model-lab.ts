/**
 * A model in a process of its own, to be tried and measured: the same harness, instance threads and assembly as in a
 * runner, so that what is found here holds there; no Redis, no worker. The process ends with close(), or with ours.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { RemudaError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { builtFile } from '../inference/built-file.js';
import type {
  FromLab,
  LabAnswer,
  LabItem,
  LabLoaded,
  LabMeasure,
  LabMeasured,
  ToLab,
} from './lab-messages.js';

export type { LabAnswer, LabItem, LabLoaded, LabMeasure, LabMeasured } from './lab-messages.js';

/** As a runner has it: the collector leaves the cores to the model. */
const NODE_OPTIONS = ['--single-threaded-gc', '--max-semi-space-size=2'];
const LONGEST_MS = 300_000;

type Question<Message = ToLab> = Message extends ToLab ? Omit<Message, 'seq'> : never;

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export class ModelLab {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #loaded!: LabLoaded;
  #seq = 0;

  /**
   * Loads a version in a process of its own.
   * @param verify run its golden cases; default false
   * @throws RemudaError what the load said (golden_mismatch where it is these), or that the process died
   */
  static async open(source: ModelSource, { verify = false } = {}): Promise<ModelLab> {
    const lab = new ModelLab();
    try {
      lab.#loaded = (await lab.#ask({ type: 'load', source, verify })) as LabLoaded;
      return lab;
    } catch (error) {
      lab.close();
      throw error;
    }
  }

  private constructor() {
    this.#child = fork(builtFile('./lab-child.js', import.meta.url), {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: NODE_OPTIONS,
    });
    this.#child.on('message', (message: FromLab) => this.#receive(message));
    this.#child.on('error', (error) => this.#fail(`could not be started: ${error.message}`));
    this.#child.on('exit', (code, signal) => this.#fail(`ended with ${signal ?? `code ${code}`}`));
  }

  get loaded(): LabLoaded {
    return this.#loaded;
  }

  /** The answer to each item, run by itself. */
  async alone(items: readonly LabItem[]): Promise<LabAnswer[]> {
    return (await this.#ask({ type: 'answer', items: [...items], together: false })) as LabAnswer[];
  }

  /** The same, all in one run as far as they may share one. */
  async together(items: readonly LabItem[]): Promise<LabAnswer[]> {
    return (await this.#ask({ type: 'answer', items: [...items], together: true })) as LabAnswer[];
  }

  /** Indexes of the items of the largest group that may share a run. */
  async largestGroup(items: readonly LabItem[]): Promise<number[]> {
    return (await this.#ask({ type: 'group', items: [...items] })) as number[];
  }

  /** @throws RemudaError when an item fails */
  async measure(order: LabMeasure): Promise<LabMeasured> {
    return (await this.#ask({ type: 'measure', ...order })) as LabMeasured;
  }

  close(): void {
    this.#child.removeAllListeners('exit');
    this.#child.kill('SIGKILL');
    this.#fail('was closed');
  }

  #ask(question: Question): Promise<unknown> {
    const seq = this.#seq++;
    return new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(`took longer than ${LONGEST_MS} ms`);
        this.close();
      }, LONGEST_MS);
      const settle = (): void => clearTimeout(timer);
      this.#pending.set(seq, {
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      this.#child.send({ ...question, seq } as ToLab, (error) => {
        if (error) this.#fail(`could not be asked: ${error.message}`);
      });
    });
  }

  #receive(message: FromLab): void {
    const pending = this.#pending.get(message.seq);
    this.#pending.delete(message.seq);
    if (message.ok) pending?.resolve(message.result);
    else {
      const { code, message: text, details } = message.error;
      pending?.reject(new RemudaError(code, text, details));
    }
  }

  #fail(what: string): void {
    for (const { reject } of this.#pending.values())
      reject(new RemudaError('runner_crashed', `the process that held the model ${what}`));
    this.#pending.clear();
  }
}
