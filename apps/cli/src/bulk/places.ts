/**
 * Where a bulk job reads and writes, as it stands on the command line: a file or images of this machine, standard
 * input, or an address that whoever runs the job reads by itself (http, S3, file: on its disk).
 */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { isGlob, isImageEnding } from '@remuda/core/bulk/input/detect';
import { usageError } from '../cli-error.js';

export type InputPlace =
  | { kind: 'file'; path: string; bytes: number }
  /** A folder, a glob, or one image. */
  | { kind: 'images'; path: string }
  | { kind: 'remote'; uri: string }
  | { kind: 'stdin' };

export type OutputPlace = { kind: 'file'; path: string } | { kind: 'remote'; uri: string };

const REMOTE = /^(https?|s3):\/\//;

/** @throws CliError where nothing is there */
export function inputPlace(text: string, cwd: string): InputPlace {
  if (text === '-') return { kind: 'stdin' };
  if (REMOTE.test(text)) return { kind: 'remote', uri: text };
  if (text.startsWith('file://')) return { kind: 'remote', uri: pathOnServer(text) };
  const path = resolve(cwd, text);
  if (existsSync(path)) return existing(path);
  if (isGlob(text)) return { kind: 'images', path };
  throw usageError(`--in ${text}: there is no such file or folder (${path}).`);
}

function existing(path: string): InputPlace {
  const facts = statSync(path);
  if (facts.isDirectory() || isImageEnding(extname(path).slice(1))) return { kind: 'images', path };
  return { kind: 'file', path, bytes: facts.size };
}

/** @throws CliError where its folder is not there */
export function outputPlace(text: string, cwd: string): OutputPlace {
  if (text.startsWith('s3://')) return { kind: 'remote', uri: text };
  if (text.startsWith('file://')) return { kind: 'remote', uri: pathOnServer(text) };
  if (REMOTE.test(text)) throw usageError(`--out ${text}: expected a path or s3://bucket/key.`);
  const path = resolve(cwd, text);
  if (!existsSync(dirname(path))) throw usageError(`--out ${text}: there is no folder ${dirname(path)}.`);
  if (existsSync(path) && statSync(path).isDirectory())
    throw usageError(`--out ${text} is a folder; expected a file, such as ${join(text, 'scored.jsonl')}.`);
  return { kind: 'file', path };
}

function pathOnServer(text: string): string {
  const path = URL.canParse(text) ? decodeURIComponent(new URL(text).pathname) : '';
  if (path.length > 1 && new URL(text).host === '') return path;
  throw usageError(`${text}: expected file:///path, a path on the machine of the API.`);
}

/** Beside an output: the hidden folder in which `--local` keeps what it needs to go on. */
export function localFolderOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.remuda-local`);
}

/** Beside an output: the hidden folder of whoever coordinates the job. */
export function workFolderOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.remuda`);
}
