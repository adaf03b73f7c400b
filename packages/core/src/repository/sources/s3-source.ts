/**
 * A model under a prefix of an S3-compatible bucket. manifest.json beside it says what each file must be; else the
 * object's own SHA-256 does; else the ETag tells one state of an object from another.
 */
import { MANIFEST_FILE, type S3Source } from '@remuda/schemas';
import type { Patience } from './patience.js';
import { isChanged, type S3Body, type S3Object, S3Objects } from './s3-client.js';
import { invalid, type OpenedFile, type OpenFrom, type SourceFile, unavailable } from './source-files.js';
import { checkPaths, MANIFEST_LIMIT_BYTES, parseManifest } from './source-manifest.js';

export interface S3Options {
  patience: Patience;
  /** sha256 that is known already of a file with this ETag; saves asking for it. */
  known(path: string, etag: string | null): string | null;
}

export interface S3Listing {
  files: SourceFile[];
  /** Ends the connections; the files cannot be opened any more. */
  close(): void;
}

/** The files of the source. @throws RemudaError source_unavailable, source_invalid */
export async function listS3Source(
  spec: S3Source,
  model: string,
  options: S3Options,
  signal: AbortSignal,
): Promise<S3Listing> {
  const objects = await S3Objects.open(spec);
  const close = (): void => objects.destroy();
  try {
    return { files: await new S3Folder(objects, spec, options, signal).files(model), close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * One object, whose key is the whole prefix.
 * @throws RemudaError source_unavailable, source_invalid, when it is opened
 */
export async function openS3File(
  spec: S3Source,
  patience: Patience,
): Promise<{ file: SourceFile; close(): void }> {
  const objects = await S3Objects.open(spec);
  const folder = new S3Folder(objects, spec, { patience, known: () => null }, new AbortController().signal);
  return { file: folder.object(spec.prefix), close: () => objects.destroy() };
}

/** The reading of one prefix: its steps share the connection and the patience. */
class S3Folder {
  readonly #objects: S3Objects;
  readonly #prefix: string;
  readonly #options: S3Options;
  readonly #signal: AbortSignal;

  constructor(objects: S3Objects, { prefix }: S3Source, options: S3Options, signal: AbortSignal) {
    this.#objects = objects;
    const folder = prefix.replace(/^\/+|\/+$/g, '');
    this.#prefix = folder === '' ? '' : `${folder}/`;
    this.#options = options;
    this.#signal = signal;
  }

  async files(model: string): Promise<SourceFile[]> {
    const found = await this.#within(`${this.#prefix}*`, (signal) =>
      this.#objects.list(this.#prefix, signal),
    );
    const manifest = found.find(({ key }) => key === `${this.#prefix}${MANIFEST_FILE}`);
    return manifest ? this.#listed(manifest, model, found) : this.#unlisted(found);
  }

  object(key: string): SourceFile {
    return this.#file(key, { key, size: null, etag: null }, null);
  }

  async #listed(manifest: S3Object, model: string, found: S3Object[]): Promise<SourceFile[]> {
    const address = this.#objects.address(manifest.key);
    const text = await this.#text(manifest, address);
    const byKey = new Map(found.map((object) => [object.key, object]));
    return parseManifest(text, address, model).files.map(({ path, size, sha256, url }) => {
      if (url !== undefined)
        throw invalid(`${address}: ${path}: "url" is for http sources; here a file is found by its path`);
      const object = byKey.get(`${this.#prefix}${path}`);
      if (!object) throw invalid(`${address}: ${path} is listed and not there; upload it`);
      if (object.size !== size)
        throw invalid(
          `${this.#objects.address(object.key)}: expected ${size} bytes as the manifest says, found ${object.size}; upload the file and the manifest again`,
        );
      return this.#file(path, object, sha256);
    });
  }

  async #unlisted(found: S3Object[]): Promise<SourceFile[]> {
    // Objects that end with "/" stand for folders.
    const files = found
      .map((object) => ({ path: object.key.slice(this.#prefix.length), object }))
      .filter(({ path }) => !path.endsWith('/') && !/(?:^|\/)\./.test(path));
    if (files.length === 0)
      throw invalid(`${this.#objects.address(this.#prefix)} is empty; check bucket and prefix`);
    checkPaths(
      files.map(({ path }) => path),
      this.#objects.address(this.#prefix),
    );
    const listed: SourceFile[] = [];
    for (const { path, object } of files) {
      const known = this.#options.known(path, object.etag);
      listed.push(this.#file(path, object, known ?? (await this.#sha256(object.key))));
    }
    return listed;
  }

  #sha256(key: string): Promise<string | null> {
    return this.#within(key, (signal) => this.#objects.sha256(key, signal));
  }

  #file(
    path: string,
    { key, size, etag }: Omit<S3Object, 'size'> & { size: number | null },
    sha256: string | null,
  ): SourceFile {
    const open = (from: OpenFrom, signal: AbortSignal): Promise<OpenedFile> => this.#open(key, from, signal);
    return { path, address: this.#objects.address(key), size, sha256, etag, open };
  }

  async #open(key: string, { offset, validator }: OpenFrom, signal: AbortSignal): Promise<OpenedFile> {
    // Without an ETag nothing says that the rest belongs to what came before.
    if (offset === 0 || validator === null) return opened(await this.#get(key, 0, null, signal), 0);
    try {
      const part = await this.#get(key, offset, validator, signal);
      // Not every server heeds If-Match.
      if (part.etag === validator && part.contentRange?.startsWith(`bytes ${offset}-`))
        return opened(part, offset);
      part.close();
    } catch (error) {
      if (!isChanged(error)) throw error;
    }
    return opened(await this.#get(key, 0, null, signal), 0);
  }

  #get(key: string, offset: number, etag: string | null, signal: AbortSignal): Promise<S3Body> {
    const call = new AbortController();
    const both = AbortSignal.any([signal, call.signal]);
    return this.#options.patience.within(
      this.#objects.address(key),
      this.#objects.get(key, offset, etag, both),
      () => call.abort(),
    );
  }

  async #text({ key, size }: S3Object, address: string): Promise<string> {
    if (size > MANIFEST_LIMIT_BYTES)
      throw invalid(`${address} is larger than a manifest may be (${MANIFEST_LIMIT_BYTES} bytes)`);
    return this.#within(key, async (signal) => {
      const { body } = await this.#objects.get(key, 0, null, signal);
      try {
        const chunks: Uint8Array[] = [];
        for await (const chunk of body) chunks.push(chunk);
        return Buffer.concat(chunks).toString('utf8');
      } catch (cause) {
        throw unavailable(`${address}: ${cause instanceof Error ? cause.message : cause}`, cause);
      }
    });
  }

  /** A short call: tried again, and ended when it takes longer than a stall may. */
  #within<T>(key: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { patience } = this.#options;
    return patience.retried(() => {
      const attempt = new AbortController();
      const both = AbortSignal.any([this.#signal, attempt.signal]);
      return patience.within(this.#objects.address(key), call(both), () => attempt.abort());
    }, this.#signal);
  }
}

function opened({ length, etag, body, close, contentRange }: S3Body, offset: number): OpenedFile {
  const whole = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return { offset, total: whole === undefined ? length : Number(whole), validator: etag, body, close };
}
