/** Images behind http(s) addresses and in S3 buckets: a bounded transfer each, tried again where that can help. */
import { RemudaError } from '../../../errors.js';
import { HttpRequests, networkFault } from '../../../repository/sources/http-requests.js';
import { Patience, type PatienceOptions } from '../../../repository/sources/patience.js';
import { S3Objects } from '../../../repository/sources/s3-client.js';
import { NOTHING_ALLOWED, parseAllowed } from '../../../webhooks/address-rules.js';
import type { ReadSettings } from '../../chunk.js';
import { type CheckedFetch, createCheckedFetch } from '../checked-fetch.js';
import { IMAGE_LIMIT_BYTES, ImageFault } from './image-fault.js';

/** Of one image, all tries together. */
const TIMEOUT_MS = 60_000;
const PATIENCE: PatienceOptions = { stallMs: 15_000, attempts: 3, pauseMs: 250 };

interface Transfer {
  length: number | null;
  body: AsyncIterable<Uint8Array>;
  close(): void;
}

export class RemoteImages {
  readonly #http: CheckedFetch;
  readonly #s3: ReadSettings['s3'];
  readonly #patience: Patience;
  readonly #buckets = new Map<string, Promise<S3Objects>>();

  constructor({ allowed, s3 }: Pick<ReadSettings, 'allowed' | 's3'>, patience: PatienceOptions = PATIENCE) {
    this.#http = createCheckedFetch(
      allowed === null ? null : allowed === undefined ? NOTHING_ALLOWED : parseAllowed(allowed),
    );
    this.#s3 = s3;
    this.#patience = new Patience(patience);
  }

  /** @throws ImageFault */
  async read(reference: string, kind: 'http' | 's3'): Promise<Uint8Array> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const open = (): Promise<Transfer> =>
      kind === 'http' ? this.#openHttp(reference, signal) : this.#openS3(reference, signal);
    try {
      return await this.#patience.retried(async () => this.#whole(reference, await open()), signal);
    } catch (error) {
      throw faultOf(error, signal);
    }
  }

  async close(): Promise<void> {
    for (const bucket of this.#buckets.values()) (await bucket).destroy();
    this.#buckets.clear();
    await this.#http.close();
  }

  async #openHttp(url: string, signal: AbortSignal): Promise<Transfer> {
    const requests = new HttpRequests({
      headers: {},
      origin: new URL(url).origin,
      secrets: () => undefined,
      fetch: this.#http.fetch,
      patience: this.#patience,
    });
    const { response, close } = await requests.get(url, {}, signal);
    const length = response.headers.get('content-length');
    const body = (response.body ?? []) as AsyncIterable<Uint8Array>;
    return { length: length === null ? null : Number(length), body, close };
  }

  async #openS3(reference: string, signal: AbortSignal): Promise<Transfer> {
    const [, bucket, key] = /^s3:\/\/([^/?#]+)\/(.+)$/i.exec(reference) ?? [];
    if (!bucket || !key) throw new ImageFault('is no object: expected s3://bucket/key');
    const opened =
      this.#buckets.get(bucket) ?? S3Objects.open({ type: 's3', bucket, prefix: '', ...this.#s3 });
    this.#buckets.set(bucket, opened);
    const objects = await opened;
    return this.#patience.within(reference, objects.get(key, 0, null, signal), () => undefined);
  }

  async #whole(reference: string, { length, body, close }: Transfer): Promise<Uint8Array> {
    try {
      if (length !== null && length > IMAGE_LIMIT_BYTES) throw tooLarge(length);
      const parts: Uint8Array[] = [];
      let size = 0;
      const chunks = body[Symbol.asyncIterator]();
      for (;;) {
        const next = await this.#patience.within(reference, chunks.next(), close);
        if (next.done) break;
        parts.push(next.value);
        size += next.value.byteLength;
        if (size > IMAGE_LIMIT_BYTES) throw tooLarge(size);
      }
      return Buffer.concat(parts);
    } catch (error) {
      throw error instanceof ImageFault ? error : networkFault('the transfer', error);
    } finally {
      close();
    }
  }
}

function tooLarge(size: number): ImageFault {
  return new ImageFault(`is ${size} bytes or more, and at most ${IMAGE_LIMIT_BYTES} are read`);
}

function faultOf(error: unknown, { aborted }: AbortSignal): ImageFault {
  if (error instanceof ImageFault) return error;
  if (aborted) return new ImageFault(`did not come within ${TIMEOUT_MS / 1_000} s`);
  // The last of several tries says why.
  const last = error instanceof RemudaError && error.cause instanceof RemudaError ? error.cause : error;
  return new ImageFault(`could not be fetched: ${last instanceof Error ? last.message : String(last)}`);
}
