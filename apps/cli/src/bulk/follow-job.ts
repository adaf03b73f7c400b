/**
 * Watches a bulk job until it ends, pauses, or the person at the terminal has had enough, and shows how far it is: one
 * line that is written anew on a terminal, a line every few seconds elsewhere. A server that is away for a while is
 * waited for: the job is not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BulkJob, isBulkTerminal } from '@remuda/schemas';
import { ProblemError, UnreachableError } from '../api/api-client.js';
import { cut } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import type { BulkControl } from './bulk-control.js';
import { progressLine, progressText } from './progress-text.js';

export interface FollowOptions {
  control: Pick<BulkControl, 'get'>;
  terminal: Terminal;
  /** Resolves when the person asks for the end. */
  asked?: Promise<unknown>;
  /** Between two looks at the job. */
  pollMs?: number;
  /** Between two lines where there is no terminal. */
  lineMs?: number;
  /** Longest time without an answer of whoever runs the job. */
  patienceMs?: number;
  now?(): number;
  pause?(ms: number): Promise<unknown>;
}

/** 'asked': before it came to an end; the job is as it was last seen. */
export type Followed = { job: BulkJob; end: 'ended' | 'paused' | 'asked' };

const POLL_MS = 500;
const LINE_MS = 5_000;
const PATIENCE_MS = 5 * 60_000;

/** @throws what the control throws; where that can pass, once it has lasted too long */
export async function followJob(first: BulkJob, options: FollowOptions): Promise<Followed> {
  const { control, terminal, pollMs = POLL_MS, patienceMs = PATIENCE_MS, now = Date.now } = options;
  const pause = options.pause ?? ((ms: number) => sleep(ms));
  const asked = (options.asked ?? new Promise<never>(() => {})).then(() => 'asked' as const);
  const shown = new Shown(terminal, options.lineMs ?? LINE_MS, now);
  let job = first;
  let awaySince: number | undefined;
  try {
    for (;;) {
      shown.show(job);
      const end = endOf(job);
      if (end) return { job, end };
      if ((await Promise.race([pause(pollMs), asked])) === 'asked') return { job, end: 'asked' };
      const seen = await Promise.race([look(control, job.id), asked]);
      if (seen === 'asked') return { job, end: 'asked' };
      if (seen.job) {
        job = seen.job;
        awaySince = undefined;
        continue;
      }
      if (awaySince === undefined) shown.note(`${firstLine(seen.error)} Waiting for it; the job goes on.`);
      awaySince ??= now();
      if (now() - awaySince > patienceMs) throw seen.error;
    }
  } finally {
    shown.end();
  }
}

export function endOf({ status }: BulkJob): 'ended' | 'paused' | undefined {
  if (isBulkTerminal(status)) return 'ended';
  return status === 'paused' ? 'paused' : undefined;
}

type Look = { job: BulkJob; error?: undefined } | { job?: undefined; error: Error };

async function look(control: Pick<BulkControl, 'get'>, id: string): Promise<Look> {
  try {
    return { job: await control.get(id) };
  } catch (error) {
    if (error instanceof UnreachableError || isPassing(error)) return { error: error as Error };
    throw error;
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof ProblemError) return error.status === 429 || error.status >= 500;
  // Of a store that is away, when the job runs here.
  return (error as { code?: string }).code === 'store_unavailable';
}

function firstLine(error: Error): string {
  return error.message.split('\n')[0] as string;
}

/** What stands on standard error. */
class Shown {
  #lastLine = Number.NEGATIVE_INFINITY;
  #lastText = '';

  constructor(
    readonly terminal: Terminal,
    readonly lineMs: number,
    readonly now: () => number,
  ) {}

  show(job: BulkJob): void {
    const { status, width } = this.terminal;
    if (status) {
      status(cut(progressLine(job), width - 1));
      return;
    }
    const text = progressText(job);
    if (text === this.#lastText || this.now() - this.#lastLine < this.lineMs) return;
    this.terminal.note(text);
    this.#lastLine = this.now();
    this.#lastText = text;
  }

  note(line: string): void {
    this.terminal.status?.('');
    this.terminal.note(line);
  }

  end(): void {
    this.terminal.status?.('');
  }
}
