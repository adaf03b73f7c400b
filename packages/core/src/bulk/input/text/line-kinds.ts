/**
 * What a line of JSONL is: plain columns, one request, a line of OpenAI's batch format, or any of these under `input`
 * in the file of the errors of another job. Told by the first rows, then the same for the whole file.
 */
import { BATCH_ENDPOINT } from '@remuda/schemas';
import type { ReadSettings } from '../../chunk.js';
import type { ColumnInfo } from '../../columns.js';
import { isObject, type JsonObject } from './json-lines.js';
import { shown } from './told-type.js';

export type LineKind = NonNullable<ReadSettings['lines']>;

export interface DetectedLines {
  lines: LineKind;
  rejected: boolean;
}

const REJECTED_KEYS = new Set(['row', 'custom_id', 'code', 'message', 'input']);
const REQUEST_KEYS = new Set([
  'custom_id',
  'id',
  'request_id',
  'inputs',
  'parameters',
  'metadata',
  'version',
]);

/** @param first the first row that is an object */
export function detectLines(first: JsonObject): DetectedLines {
  const rejected = isRejected(first);
  return { lines: kindOf(rejected ? innerOf(first.input) : first), rejected };
}

/** Of the file of errors: {row, custom_id, code, message, input}. */
export function isRejected(line: JsonObject): boolean {
  const { row, code, message } = line;
  if (!Number.isInteger(row) || typeof code !== 'string' || typeof message !== 'string') return false;
  return 'input' in line && Object.keys(line).every((key) => REJECTED_KEYS.has(key));
}

/** What was rejected may be the text of a line that could not be read, and have been mended in its quotes. */
export function innerOf(input: unknown): JsonObject | undefined {
  if (isObject(input)) return input;
  if (typeof input !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(input);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function kindOf(line: JsonObject | undefined): LineKind {
  if (line === undefined) return 'columns';
  if ('custom_id' in line && 'method' in line && 'url' in line && 'body' in line) return 'openai';
  return isObject(line.inputs) && Object.keys(line).every((key) => REQUEST_KEYS.has(key))
    ? 'requests'
    : 'columns';
}

/** Columns of the kinds that have the same ones in every file. */
export function columnsOf(kind: Exclude<LineKind, 'columns'>): ColumnInfo[] {
  const id = { name: 'custom_id', type: 'string' };
  if (kind === 'openai') return [id, { name: 'url', type: 'string' }, { name: 'body', type: 'json' }];
  return [id, { name: 'inputs', type: 'json' }, { name: 'parameters', type: 'json' }];
}

export interface RequestLine {
  customId: string | null;
  /** Of the OpenAI format. */
  url: string | null;
  /** inputs or body. */
  content: JsonObject;
  parameters: JsonObject | null;
}

/** The parts of a line, or why it is none of that kind. */
export function requestOf(line: JsonObject, kind: Exclude<LineKind, 'columns'>): RequestLine | string {
  return kind === 'openai' ? openAiLine(line) : inferenceLine(line);
}

function openAiLine({ custom_id, method, url, body }: JsonObject): RequestLine | string {
  const customId = idOf(custom_id);
  if (customId === null)
    return 'has no "custom_id"; give each line a text of its own that its answer comes back with';
  if (customId === undefined) return `custom_id: ${shown(custom_id)}, where a text was expected`;
  if (method !== 'POST') return `method: ${shown(method)}, where "POST" was expected`;
  if (typeof url !== 'string') return `url: ${shown(url)}, where "${BATCH_ENDPOINT}" was expected`;
  if (!isObject(body)) return `body: ${shown(body)}, where an object with "model" and "inputs" was expected`;
  return { customId, url, content: body, parameters: null };
}

function inferenceLine(line: JsonObject): RequestLine | string {
  const { custom_id, id, request_id, inputs, parameters } = line;
  const given = custom_id ?? id ?? request_id;
  const customId = idOf(given);
  if (customId === undefined) return `custom_id: ${shown(given)}, where a text was expected`;
  if (!isObject(inputs))
    return `inputs: ${shown(inputs)}, where an object was expected, an input of the model by its name`;
  if (parameters !== undefined && parameters !== null && !isObject(parameters))
    return `parameters: ${shown(parameters)}, where an object was expected`;
  const unknown = Object.keys(line).find((key) => !REQUEST_KEYS.has(key));
  if (unknown !== undefined)
    return `"${unknown}" is not known here; a line has ${[...REQUEST_KEYS].join(', ')}`;
  return { customId, url: null, content: inputs, parameters: (parameters ?? null) as JsonObject | null };
}

/** null: none was given; undefined: it cannot be one. */
function idOf(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  return Number.isSafeInteger(value) ? String(value) : undefined;
}
