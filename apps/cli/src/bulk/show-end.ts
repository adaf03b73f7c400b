/** The last word of a bulk job on this terminal: its table or its JSON, and the exit code. */
import type { BulkJob } from '@remuda/schemas';
import { printJson } from '../commands/context.js';
import type { Terminal } from '../terminal/terminal.js';
import { endCode } from './end-code.js';
import { jobLines, type ShownPlaces } from './job-text.js';

export interface End {
  job: BulkJob;
  places: ShownPlaces;
  /** The command that goes on, where there is something to go on with. */
  resume?: string | undefined;
  /** Default: as the job has ended. */
  code?: number;
}

/** @returns the exit code */
export function showEnd({ job, places, resume, code }: End, json: boolean, terminal: Terminal): number {
  const exit = code ?? endCode(job);
  if (json) {
    const saved = { output: places.output ?? null, errors: places.errors ?? null };
    printJson(terminal, { ...job, saved, resume: resume ?? null, exit_code: exit });
  } else {
    for (const line of jobLines(job, terminal, places)) terminal.out(line);
    if (resume) terminal.note(`Go on with:\n  ${resume}`);
  }
  return exit;
}
