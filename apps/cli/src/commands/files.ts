/** `remuda files list | upload | download | delete`: what bulk jobs of a server read and have written. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { BulkFile } from '@remuda/schemas';
import { ApiBulk } from '../bulk/api-bulk.js';
import { downloadFile } from '../bulk/download-file.js';
import { outputPlace } from '../bulk/places.js';
import { count } from '../bulk/progress-text.js';
import { refuseExisting } from '../bulk/score-plan.js';
import { fileUpload, type Upload, uploadFile } from '../bulk/upload-file.js';
import { usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import type { PageOptions } from './batches.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

export async function listFiles(
  options: PageOptions & { purpose?: string },
  { terminal, config }: CommandContext,
): Promise<number> {
  const { limit, after, purpose } = options;
  const page = await new ApiBulk(apiOf(options, config)).files({ limit, after, purpose });
  if (options.json) printJson(terminal, page);
  else {
    for (const line of fileLines(page.data, terminal)) terminal.out(line);
    if (page.has_more) terminal.note(`There are more: --after ${page.last_id}`);
  }
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'file' },
  { title: 'name', shrinkTo: 12 },
  { title: 'purpose' },
  { title: 'bytes', align: 'right' },
  { title: 'created' },
  { title: 'kept until' },
];

function fileLines(files: readonly BulkFile[], { colours, width }: Terminal): string[] {
  if (files.length === 0) return ['No files.'];
  const rows = files.map(({ id, filename, purpose, bytes, created_at, expires_at }) => [
    id,
    filename,
    purpose,
    count(bytes),
    timeText(created_at),
    expires_at === null ? 'it is deleted' : timeText(expires_at),
  ]);
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}

function timeText(unixSeconds: number): string {
  return new Date(unixSeconds * 1_000).toISOString().slice(0, 19).replace('T', ' ');
}

/** @param path "-": standard input, under the name that `name` gives */
export async function uploadOne(
  path: string,
  options: ApiOptions & { name?: string },
  { terminal, config, stdin }: CommandContext,
): Promise<number> {
  const upload: Upload =
    path === '-'
      ? { filename: options.name ?? 'stdin.jsonl', content: stdin, bytes: undefined }
      : onDisk(path, config.cwd);
  const named = { ...upload, filename: options.name ?? upload.filename };
  const file = await uploadFile(new ApiBulk(apiOf(options, config)), named, terminal);
  if (options.json) printJson(terminal, file);
  else terminal.out(file.id);
  return EXIT.ok;
}

function onDisk(path: string, cwd: string): Upload {
  const absolute = resolve(cwd, path);
  const facts = statSync(absolute, { throwIfNoEntry: false });
  if (!facts?.isFile()) throw usageError(`${path} is no file (${absolute}).`);
  return fileUpload(absolute, facts.size);
}

export async function downloadOne(
  id: string,
  options: ApiOptions & { out?: string; overwrite?: boolean },
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = new ApiBulk(apiOf(options, config));
  const file = await api.file(id);
  const place = outputPlace(options.out ?? file.filename.replace(/[/\\]/g, '_'), config.cwd);
  if (place.kind !== 'file') throw usageError('--out: expected a path on this machine.');
  const { overwrite = false } = options;
  refuseExisting([place], overwrite);
  await withProgress(terminal, `fetching ${place.path}`, (say) =>
    downloadFile(api, file, place.path, {
      overwrite,
      onBytes: (bytes) => say(`${megabytes(bytes)} of ${megabytes(file.bytes)}`),
    }),
  );
  if (options.json) printJson(terminal, { ...file, saved: place.path });
  else terminal.out(place.path);
  return EXIT.ok;
}

export async function deleteFiles(
  ids: readonly string[],
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = new ApiBulk(apiOf(options, config));
  const deleted = [];
  for (const id of ids) {
    deleted.push(await api.deleteFile(id));
    if (!options.json) terminal.out(`${id} deleted`);
  }
  if (options.json) printJson(terminal, { deleted });
  return EXIT.ok;
}
