/**
 * The body of `remuda submit`, from whichever source the command line names: image files (a form: one file is the
 * request, several are its items), inputs by name, or a whole request as JSON. What it holds is checked by the API.
 */
import { readFile } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import type { RequestBody } from '../api/api-client.js';
import { CliError, reasonOf, usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { NamedValue } from './option-values.js';

export interface BodySources {
  images?: readonly string[];
  inputs?: readonly NamedValue[];
  /** Path of a JSON file; "-" is standard input. */
  file?: string;
  /** Number or alias. */
  version?: string;
  webhook?: string;
  priority?: number;
  timeoutMs?: number;
  startBy?: string;
  finishTimeout?: number;
  finishBy?: string;
}

export interface BodyContext {
  cwd: string;
  stdin: AsyncIterable<Buffer | string>;
  /** Name of the model's image input, asked for only where there are images. */
  imageInput(): Promise<string>;
}

type JsonObject = Record<string, unknown>;

/** @throws CliError for a wrong set of options, or a file that cannot be read */
export async function requestBody(sources: BodySources, context: BodyContext): Promise<RequestBody> {
  const { images = [], inputs = [], file } = sources;
  const named = [
    images.length > 0 && '--image',
    inputs.length > 0 && '--input',
    file !== undefined && '--file',
  ];
  const given = named.filter(Boolean);
  if (given.length > 1) throw usageError(`${given.join(' and ')} cannot stand together; give one of them.`);
  if (images.length > 0) return imageForm(images, sources, context);
  if (inputs.length > 0) return jsonBody({ inputs: await namedInputs(inputs, context.cwd) }, sources);
  if (file !== undefined) return jsonBody(await wholeRequest(file, context), sources);
  throw usageError('Nothing to send: give --image FILE, --input NAME=VALUE, --file request.json, or "-".');
}

async function imageForm(
  images: readonly string[],
  sources: BodySources,
  context: BodyContext,
): Promise<RequestBody> {
  const files = await Promise.all(images.map((image) => read(resolve(context.cwd, image))));
  const field = await context.imageInput();
  const form = new FormData();
  const metadata = metadataOf(sources);
  const { version, webhook } = sources;
  const options = { version, webhook, metadata };
  if (Object.values(options).some((value) => value !== undefined))
    form.set('request', JSON.stringify(options));
  for (const [at, bytes] of files.entries()) {
    form.append(field, new Blob([new Uint8Array(bytes)]), basename(images[at] as string));
  }
  return { body: form };
}

async function namedInputs(inputs: readonly NamedValue[], cwd: string): Promise<JsonObject> {
  const named: JsonObject = {};
  for (const { name, value } of inputs) {
    if (name in named) throw usageError(`--input ${name} is given twice.`);
    named[name] = value.startsWith('@') ? await fileValue(resolve(cwd, value.slice(1))) : literal(value);
  }
  return named;
}

/** A .json file is a value or a Tensor; any other file is its bytes in base64, as an image input takes them. */
async function fileValue(path: string): Promise<unknown> {
  const bytes = await read(path);
  return extname(path).toLowerCase() === '.json'
    ? parseJsonOf(bytes.toString('utf8'), path)
    : bytes.toString('base64');
}

/** JSON where it is JSON, else the text itself: x=3 is a number, x=[1,2] an array, x=hello a string. */
function literal(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function wholeRequest(file: string, { cwd, stdin }: BodyContext): Promise<JsonObject> {
  const name = file === '-' ? 'standard input' : file;
  const text = file === '-' ? await readAll(stdin) : (await read(resolve(cwd, file))).toString('utf8');
  const request = parseJsonOf(text, name);
  if (typeof request === 'object' && request !== null && !Array.isArray(request))
    return request as JsonObject;
  throw new CliError(
    `${name} holds no InferenceRequest: expected an object with "inputs" or "items".`,
    EXIT.usage,
  );
}

/** Options of the command line go before what the file says. */
function jsonBody(request: JsonObject, sources: BodySources): RequestBody {
  const metadata = metadataOf(sources);
  const before = request.metadata as JsonObject | undefined;
  const { version = request.version, webhook = request.webhook } = sources;
  const merged = metadata ? { ...before, ...metadata } : before;
  const body = { ...request, version, webhook, metadata: merged };
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

function metadataOf(sources: BodySources): JsonObject | undefined {
  const { priority, timeoutMs, startBy, finishTimeout, finishBy } = sources;
  const metadata = {
    priority,
    timeout_ms: timeoutMs,
    start_by: startBy,
    finish_timeout_ms: finishTimeout,
    finish_by: finishBy,
  };
  return Object.values(metadata).every((value) => value === undefined) ? undefined : metadata;
}

async function read(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${reasonOf(error)}`, EXIT.usage, { cause: error });
  }
}

async function readAll(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function parseJsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`${name} is not valid JSON: ${reasonOf(error)}`, EXIT.usage, { cause: error });
  }
}
