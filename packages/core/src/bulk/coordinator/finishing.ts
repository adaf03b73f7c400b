/**
 * The end of a job: its parts joined, its errors joined, both given to their places. Done again after a crash it gives the
 * same; nothing that stands in the places is whole before it is renamed.
 */
import { copyFile, link } from 'node:fs/promises';
import type { RowReader } from '../input/bulk-input.js';
import type { BulkSpec } from '../job-record.js';
import type { ByteSink } from '../output/bulk-output.js';
import { FileSink } from '../output/file-sink.js';
import { type JoinOptions, joinErrors, joinOutput, wholeFile } from './joining.js';
import type { Delivery, Given, JobOutput } from './tools.js';
import { unfinishedRows } from './unfinished-rows.js';
import type { Opened } from './validating.js';
import type { WorkFolder } from './work-folder.js';
import type { WorkLog } from './work-log.js';

export interface FinishDeps {
  spec: BulkSpec;
  folder: WorkFolder;
  log: WorkLog;
  opened: Opened;
  output: JobOutput;
  rows: RowReader;
  delivery: Delivery;
  /** It has ended well: its work folder goes. */
  last: boolean;
  /** Rows that were not run stand in the file of errors. */
  expired: boolean;
  goOn(): void;
}

/** @throws RemudaError disk_full, output_exists */
export async function finishJob(deps: FinishDeps): Promise<Given> {
  const { spec, folder, log, delivery, expired, goOn } = deps;
  const { ledger, epoch } = log;
  const parts = ledger.parts(spec.output.unordered ? 'done' : 'rows');
  await folder.removeJoined(epoch);
  const joining = { folder, parts, goOn };
  await makeOutput(joining, deps);
  const failed = expired || ledger.rowsFailed > 0 || parts.some((part) => part.errors !== null);
  if (failed)
    await writeFileWith(`${folder.path}/failed.${epoch}`, async (sink) => {
      await joinErrors(joining, sink);
      if (expired) await writeUnfinished(deps, sink);
    });
  const again = ledger.given;
  if (!again) await delivery.check();
  // What lies there after this line is what this job has put there.
  await log.commit({ k: 'give', round: ledger.round });
  goOn();
  return delivery.give(failed, again);
}

/** Where nothing will run anew, and the parts came in order, their file is the output: it is not written a second time. */
async function makeOutput(joining: JoinOptions, { folder, log, output, last }: FinishDeps): Promise<void> {
  const path = `${folder.path}/output.${log.epoch}`;
  const whole = last && log.ledger.rowsFailed === 0 ? await wholeFile(joining, output.encoder) : null;
  if (whole === null) {
    await writeFileWith(path, (sink) => joinOutput(joining, output.encoder, sink));
    return;
  }
  try {
    await link(folder.file('data', whole), path);
  } catch {
    // A file system without second names.
    await copyFile(folder.file('data', whole), path);
  }
}

async function writeFileWith(path: string, work: (sink: ByteSink) => Promise<void>): Promise<void> {
  const sink = await FileSink.open(path);
  try {
    await work(sink);
  } catch (error) {
    await sink.discard().catch(() => undefined);
    throw error;
  }
  await sink.close();
}

async function writeUnfinished(
  { log, opened, rows, output, spec, goOn }: FinishDeps,
  sink: ByteSink,
): Promise<void> {
  const { ledger } = log;
  const { input, settled } = opened;
  for await (const result of unfinishedRows({
    ledger,
    settled,
    input,
    rows,
    window: spec.completionWindow,
  })) {
    goOn();
    const lines = await output.errorLines(result);
    if (lines) await sink.write(lines);
  }
}
