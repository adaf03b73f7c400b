/** A model behind http(s): a manifest and the files it lists, or a single .onnx file that becomes version 1. */
import { createHash } from 'node:crypto';
import type { HttpSource, ManifestFile } from '@remuda/schemas';
import { CONFIG_FILE } from '../manifests.js';
import { type HttpAnswer, HttpRequests, type HttpRequestsOptions, networkFault } from './http-requests.js';
import { invalid, type OpenedFile, type OpenFrom, type SourceFile, unavailable } from './source-files.js';
import { MANIFEST_LIMIT_BYTES, parseManifest } from './source-manifest.js';
import { shownUrl } from './source-uri.js';

type Options = Omit<HttpRequestsOptions, 'headers' | 'origin'>;

const SINGLE_CONFIG = 'harness: onnx\n';

/** The files of the source. @throws RemudaError source_unavailable, source_invalid */
export async function listHttpSource(
  spec: HttpSource,
  model: string,
  options: Options,
  signal: AbortSignal,
): Promise<SourceFile[]> {
  const { origin, pathname } = new URL(spec.url);
  const requests = new HttpRequests({ ...options, headers: spec.headers ?? {}, origin });
  if (pathname.endsWith('.onnx')) return singleFile(spec, requests);
  const text = await options.patience.retried(() => readManifest(spec, requests, options, signal), signal);
  const manifest = parseManifest(text, shownUrl(spec.url), model);
  return manifest.files.map((file) => {
    const url = urlOf(file, spec.url);
    return httpFile(url, file.path, file.size, file.sha256, requests);
  });
}

function singleFile(spec: HttpSource, requests: HttpRequests): SourceFile[] {
  const address = shownUrl(spec.url);
  if (spec.sha256 === undefined)
    throw invalid(
      `${address} needs a sha256, since nothing else says what the file should be; or give a manifest`,
    );
  return [
    textFile(CONFIG_FILE, SINGLE_CONFIG),
    httpFile(spec.url, '1/model.onnx', null, spec.sha256, requests),
  ];
}

async function readManifest(
  spec: HttpSource,
  requests: HttpRequests,
  { patience }: Options,
  signal: AbortSignal,
): Promise<string> {
  const address = shownUrl(spec.url);
  const { response, close } = await requests.get(spec.url, {}, signal);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const body = bodyOf(response)[Symbol.asyncIterator]();
    for (;;) {
      const next = await patience.within(address, body.next(), close);
      if (next.done) break;
      size += next.value.byteLength;
      if (size > MANIFEST_LIMIT_BYTES)
        throw invalid(
          `${address} is larger than a manifest may be (${MANIFEST_LIMIT_BYTES} bytes); a model file's address ends with .onnx`,
        );
      chunks.push(next.value);
    }
  } catch (error) {
    throw networkFault(address, error);
  } finally {
    close();
  }
  const bytes = Buffer.concat(chunks);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (spec.sha256 !== undefined && sha256 !== spec.sha256)
    throw invalid(`${address}: expected sha256 ${spec.sha256}, received ${sha256}; register the new one`, {
      expected: spec.sha256,
      received: sha256,
    });
  return bytes.toString('utf8');
}

/** @throws RemudaError source_invalid */
function urlOf(file: ManifestFile, manifestUrl: string): string {
  const relative = file.url ?? file.path.split('/').map(encodeURIComponent).join('/');
  const base = new URL(manifestUrl);
  const url = URL.canParse(relative, base.href) ? new URL(relative, base) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && base.protocol === 'http:')) return url.href;
  throw invalid(
    `${shownUrl(manifestUrl)}: ${file.path}: url "${file.url}" is not an address that ${base.protocol} may lead to`,
  );
}

/** @param sha256 null: whatever comes is taken, and gone on with by its ETag or date */
export function httpFile(
  url: string,
  path: string,
  size: number | null,
  sha256: string | null,
  requests: HttpRequests,
): SourceFile {
  const open = (from: OpenFrom, signal: AbortSignal): Promise<OpenedFile> =>
    openHttp(requests, url, from, signal);
  return { path, address: shownUrl(url), size, sha256, etag: null, open };
}

async function openHttp(
  requests: HttpRequests,
  url: string,
  from: OpenFrom,
  signal: AbortSignal,
): Promise<OpenedFile> {
  if (from.offset === 0) return opened(url, await requests.get(url, {}, signal), 0);
  const range = {
    range: `bytes=${from.offset}-`,
    ...(from.validator === null ? {} : { 'if-range': from.validator }),
  };
  const answer = await requests.get(url, range, signal);
  const { status, headers } = answer.response;
  if (status === 200) return opened(url, answer, 0);
  const [, first, total] =
    /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') ?? [];
  if (status === 206 && Number(first) === from.offset && isStill(from.validator, headers))
    return opened(url, answer, from.offset, total);
  answer.close();
  // All of it had come already.
  if (status === 416 && Number(total) === from.offset)
    return { ...from, total: from.offset, body: nothing(), close: () => undefined };
  return opened(url, await requests.get(url, {}, signal), 0);
}

function opened(url: string, { response, close }: HttpAnswer, offset: number, total?: string): OpenedFile {
  const { headers, status } = response;
  if (offset === 0 && status !== 200)
    throw unavailable(`${shownUrl(url)}: the server answered ${status} to a call for the whole file`);
  // A body that is packed in spite of what was asked comes unpacked: its length says nothing.
  const packed = headers.has('content-encoding');
  const whole = packed ? null : headers.get('content-length');
  const told = offset === 0 ? whole : total;
  return {
    offset,
    total: told && /^\d+$/.test(told) ? Number(told) : null,
    // Nor does a place in it say where to go on.
    validator: packed ? null : validatorOf(headers),
    body: bodyOf(response),
    close,
  };
}

/** If-Range takes no weak ETag; a date is good to a second, and sha256 is checked in the end. */
function validatorOf(headers: Headers): string | null {
  const etag = headers.get('etag');
  if (etag !== null && !etag.startsWith('W/')) return etag;
  return headers.get('last-modified');
}

/** Some servers send a part of the file as it is now, whatever If-Range says. */
function isStill(validator: string | null, headers: Headers): boolean {
  if (validator === null) return true;
  const now = headers.get(validator.startsWith('"') ? 'etag' : 'last-modified');
  return now === null || now === validator;
}

function bodyOf(response: Response): AsyncIterable<Uint8Array> {
  return (response.body as AsyncIterable<Uint8Array> | null) ?? nothing();
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** A file that is not behind the address: its text is given. */
function textFile(path: string, text: string): SourceFile {
  const bytes = Buffer.from(text);
  async function* body(offset: number): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(offset);
  }
  return {
    path,
    address: path,
    size: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    etag: null,
    open: async ({ offset }) => ({
      offset,
      total: bytes.length,
      validator: null,
      body: body(offset),
      close: () => undefined,
    }),
  };
}
