/**
 * The S3 SDK, loaded when the first S3 source is read or output written: nobody else pays for it. Credentials come from the SDK's own
 * chain. Its faults become ours here, with what can be done about them.
 */
import type { GetObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import type { S3Source } from '@remuda/schemas';
import type { RemudaError } from '../../errors.js';
import { invalid, unavailable } from './source-files.js';

export interface S3Object {
  key: string;
  size: number;
  etag: string | null;
}

export interface S3Body {
  /** "bytes 10-99/100" of a part; undefined: the whole object. */
  contentRange: string | undefined;
  length: number | null;
  etag: string | null;
  body: AsyncIterable<Uint8Array>;
  close(): void;
}

const FINAL: Readonly<Record<string, string>> = {
  NoSuchBucket: 'there is no such bucket; check the name and the region',
  NoSuchKey: 'there is no such object',
  NotFound: 'there is no such object',
  AccessDenied: 'access denied; check the credentials and the bucket policy',
  Forbidden: 'access denied; check the credentials and the bucket policy',
  InvalidAccessKeyId: 'the access key is not known; check the credentials',
  SignatureDoesNotMatch: 'the secret key is wrong; check the credentials',
  CredentialsProviderError:
    'no credentials; give the worker AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role',
  PermanentRedirect: 'the bucket is in another region; add ?region=… to the source',
  AuthorizationHeaderMalformed: 'the region is wrong; add ?region=… to the source',
};

export class S3Objects {
  readonly #sdk: typeof import('@aws-sdk/client-s3');
  readonly #client: S3Client;
  readonly #bucket: string;

  private constructor(sdk: typeof import('@aws-sdk/client-s3'), spec: S3Source) {
    this.#sdk = sdk;
    this.#bucket = spec.bucket;
    this.#client = new sdk.S3Client({
      // A server that is not AWS mostly takes any region, but the SDK wants one.
      ...(spec.region || spec.endpoint ? { region: spec.region ?? 'us-east-1' } : {}),
      ...(spec.endpoint ? { endpoint: spec.endpoint } : {}),
      forcePathStyle: spec.force_path_style ?? spec.endpoint !== undefined,
      // Patience tries again, and sha256 is checked by us.
      maxAttempts: 1,
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Servers that are not AWS mostly know no checksums behind a body.
      requestChecksumCalculation: 'WHEN_REQUIRED',
    });
  }

  static async open(spec: S3Source): Promise<S3Objects> {
    return new S3Objects(await import('@aws-sdk/client-s3'), spec);
  }

  /** Every object whose key starts with the prefix. */
  async list(prefix: string, signal: AbortSignal): Promise<S3Object[]> {
    const found: S3Object[] = [];
    let next: string | undefined;
    do {
      const page = await this.#told(`${prefix}*`, () =>
        this.#client.send(
          new this.#sdk.ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: prefix,
            ContinuationToken: next,
          }),
          { abortSignal: signal },
        ),
      );
      for (const { Key: key, Size: size = 0, ETag: etag = null } of page.Contents ?? [])
        if (key !== undefined) found.push({ key, size, etag });
      next = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (next !== undefined);
    return found;
  }

  /** sha256 in hex of the whole object, where S3 keeps it; else null. */
  async sha256(key: string, signal: AbortSignal): Promise<string | null> {
    const head = await this.#told(key, () =>
      this.#client.send(
        new this.#sdk.HeadObjectCommand({ Bucket: this.#bucket, Key: key, ChecksumMode: 'ENABLED' }),
        { abortSignal: signal },
      ),
    );
    return wholeSha256(head.ChecksumSHA256);
  }

  /** @param etag the object must still have it; null: any */
  async get(key: string, offset: number, etag: string | null, signal: AbortSignal): Promise<S3Body> {
    const answer = await this.#told(key, () =>
      this.#client.send(
        new this.#sdk.GetObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          ...(offset > 0 ? { Range: `bytes=${offset}-` } : {}),
          ...(etag === null ? {} : { IfMatch: etag }),
        }),
        { abortSignal: signal },
      ),
    );
    return toBody(answer);
  }

  async exists(key: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#client.send(new this.#sdk.HeadObjectCommand({ Bucket: this.#bucket, Key: key }), {
        abortSignal: signal,
      });
      return true;
    } catch (error) {
      const { name } = error as Partial<Error>;
      if (name === 'NotFound' || name === 'NoSuchKey') return false;
      throw s3Fault(this.address(key), error);
    }
  }

  async put(key: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const command = new this.#sdk.PutObjectCommand({ Bucket: this.#bucket, Key: key, Body: bytes });
    await this.#told(key, () => this.#client.send(command, { abortSignal: signal }));
  }

  /** Begins an upload in parts. @returns its id */
  async beginUpload(key: string, signal: AbortSignal): Promise<string> {
    const command = new this.#sdk.CreateMultipartUploadCommand({ Bucket: this.#bucket, Key: key });
    const { UploadId: id } = await this.#told(key, () => this.#client.send(command, { abortSignal: signal }));
    if (id === undefined) throw unavailable(`${this.address(key)}: the upload got no id`);
    return id;
  }

  /** @param part from 1 @returns the ETag that completeUpload() wants */
  async uploadPart(
    key: string,
    id: string,
    part: number,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<string> {
    const command = new this.#sdk.UploadPartCommand({
      Bucket: this.#bucket,
      Key: key,
      UploadId: id,
      PartNumber: part,
      Body: bytes,
    });
    const { ETag: etag } = await this.#told(key, () => this.#client.send(command, { abortSignal: signal }));
    if (etag === undefined) throw unavailable(`${this.address(key)}: part ${part} got no ETag`);
    return etag;
  }

  /** The object is there when it resolves, whole. @param etags of its parts, in order */
  async completeUpload(
    key: string,
    id: string,
    etags: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const command = new this.#sdk.CompleteMultipartUploadCommand({
      Bucket: this.#bucket,
      Key: key,
      UploadId: id,
      MultipartUpload: { Parts: etags.map((ETag, i) => ({ ETag, PartNumber: i + 1 })) },
    });
    await this.#told(key, () => this.#client.send(command, { abortSignal: signal }));
  }

  /** Its parts go away. */
  async abortUpload(key: string, id: string): Promise<void> {
    const command = new this.#sdk.AbortMultipartUploadCommand({
      Bucket: this.#bucket,
      Key: key,
      UploadId: id,
    });
    await this.#told(key, () => this.#client.send(command));
  }

  address(key: string): string {
    return `s3://${this.#bucket}/${key}`;
  }

  destroy(): void {
    this.#client.destroy();
  }

  async #told<T>(key: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw s3Fault(this.address(key), error);
    }
  }
}

/** True: the object is not the one that the ETag stood for, or is shorter than the offset. */
export function isChanged(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { name?: string } | undefined) : undefined;
  return cause?.name === 'PreconditionFailed' || cause?.name === 'InvalidRange';
}

/** Base64 as hex; a checksum of checksums ("…-3", an upload in parts) is none of the object. */
export function wholeSha256(checksum: string | undefined): string | null {
  if (checksum === undefined || checksum.includes('-')) return null;
  const bytes = Buffer.from(checksum, 'base64');
  return bytes.length === 32 ? bytes.toString('hex') : null;
}

function toBody(answer: GetObjectCommandOutput): S3Body {
  const body = answer.Body as (AsyncIterable<Uint8Array> & { destroy(): void }) | undefined;
  return {
    contentRange: answer.ContentRange,
    length: answer.ContentLength ?? null,
    etag: answer.ETag ?? null,
    body: body ?? nothing(),
    close: () => body?.destroy(),
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function s3Fault(address: string, error: unknown): RemudaError {
  const {
    name = '',
    message = String(error),
    $metadata,
  } = error as Partial<Error> & {
    $metadata?: { httpStatusCode?: number };
  };
  const known = FINAL[name];
  if (known !== undefined) return invalid(`${address}: ${known} (${name})`, {}, error);
  if (/region is missing/i.test(message))
    return invalid(`${address}: no region is known; add ?region=… to the source`, {}, error);
  const status = $metadata?.httpStatusCode;
  const told = `${address}: ${message === '' || message === 'UnknownError' ? name : message}${status === undefined ? '' : ` (${status})`}`;
  if (status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429)
    return invalid(told, {}, error);
  return unavailable(told, error);
}
