/** A line of a list of images: a reference, an id before it and a tab, or an object that names both. */

import { type JsonObject, parseLine } from '../text/json-lines.js';
import { innerOf, isRejected } from '../text/line-kinds.js';
import { shown } from '../text/told-type.js';

export interface ImageReference {
  customId: string | null;
  /** As it stands in the list. */
  text: string;
  /** path: of this machine. */
  kind: 'path' | 'http' | 's3';
  /** In the file of errors of another job: which row of that job's input it was. */
  row?: number;
}

const EXPECTED =
  'expected a path, an http(s) or s3:// address, an id and a tab before one, or an object such as {"custom_id": "a", "url": "https://…"}';

/** @returns the reference, or why there is none */
export function parseReference(line: string): ImageReference | string {
  if (line.trimStart().startsWith('{')) return ofObject(parseLine(line));
  const tab = line.indexOf('\t');
  if (tab === -1) return ofText(line.trim(), null);
  return ofText(line.slice(tab + 1).trim(), line.slice(0, tab).trim() || null);
}

function ofObject(line: JsonObject | string): ImageReference | string {
  if (typeof line === 'string') return line;
  if (!isRejected(line)) return ofParts(line);
  const { input, row } = line;
  const found = typeof input === 'string' ? parseReference(input) : ofParts(innerOf(input) ?? {});
  return typeof found === 'string' ? found : { ...found, row: row as number };
}

function ofParts({ custom_id: customId = null, url, path, image }: JsonObject): ImageReference | string {
  const given = [url, path, image].filter((value) => value !== undefined && value !== null);
  if (given.length !== 1) return `has ${given.length} of "url", "path" and "image", where one was expected`;
  const [reference] = given;
  if (typeof reference !== 'string')
    return `is ${shown(reference)}, where a reference was expected; ${EXPECTED}`;
  if (customId === null) return ofText(reference, null);
  if (typeof customId !== 'string' && !Number.isSafeInteger(customId))
    return `custom_id: ${shown(customId)}, where a text was expected`;
  return ofText(reference, String(customId));
}

function ofText(text: string, customId: string | null): ImageReference | string {
  if (text === '') return `has no reference; ${EXPECTED}`;
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return { customId, text, kind: 'path' };
  if (scheme === 's3') return { customId, text, kind: 's3' };
  if (scheme === 'http' || scheme === 'https') {
    if (URL.canParse(text)) return { customId, text, kind: 'http' };
    return `is ${shown(text)}, which is no valid address; ${EXPECTED}`;
  }
  return `is ${shown(text)}: "${scheme}:" is no kind of reference; ${EXPECTED}`;
}
