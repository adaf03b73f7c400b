/**
 * What every kind of source looks like to the cache: a list of files, each of which can be opened at an offset. The
 * kinds (http-source, s3-source) know their protocol and nothing of the disk; download.ts knows the disk alone.
 */
import { RemudaError } from '../../errors.js';
import { isIdentityFile } from '../version-digest.js';

export interface SourceFile {
  /** Relative to the model folder, with "/". */
  path: string;
  /** For people: where it comes from, without secrets. */
  address: string;
  /** Bytes; null: not known before the download. */
  size: number | null;
  /** null: the source does not say; what is downloaded is then taken at its word and recorded. */
  sha256: string | null;
  /** Changes with the bytes where there is no sha256; null: the source has none. */
  etag: string | null;
  /** @throws RemudaError source_unavailable (worth another try), source_invalid */
  open(from: OpenFrom, signal: AbortSignal): Promise<OpenedFile>;
}

export interface OpenFrom {
  offset: number;
  /** What open() gave when the bytes before `offset` came; null: it gave none. */
  validator: string | null;
}

export interface OpenedFile {
  /** Where the body begins: the offset asked for, or 0 when the file changed or the server knows no ranges. */
  offset: number;
  /** Size of the whole file; null: not told. */
  total: number | null;
  /** Stands for these very bytes in a later open(). */
  validator: string | null;
  body: AsyncIterable<Uint8Array>;
  /** Ends the transfer, wherever it is. */
  close(): void;
}

const VERSION_PATH = /^([1-9]\d{0,8})\//;

/** "2" of 2/model.onnx; null: the file belongs to all versions. */
export function versionOf(path: string): string | null {
  return VERSION_PATH.exec(path)?.[1] ?? null;
}

/** Whether the file is what its version is: it never changes. Golden cases may, and what belongs to all versions. */
export function isFixed(path: string): boolean {
  const version = versionOf(path);
  return version !== null && isIdentityFile(path.slice(version.length + 1));
}

/** The versions that the paths belong to, lowest first. */
export function versionsOf(paths: Iterable<string>): string[] {
  const found = new Set<string>();
  for (const path of paths) {
    const version = versionOf(path);
    if (version !== null) found.add(version);
  }
  return [...found].sort((a, b) => Number(a) - Number(b));
}

/** Two files of one name, and a file where another needs a folder, cannot both be on a disk. */
export function clashOf(paths: readonly string[]): string | undefined {
  // Lower case: some disks take A and a for one file.
  const files = new Set<string>();
  for (const path of paths) {
    if (files.has(path.toLowerCase())) return path;
    files.add(path.toLowerCase());
  }
  return paths.find((path) => {
    const parts = path.toLowerCase().split('/');
    return parts.some((_, index) => index > 0 && files.has(parts.slice(0, index).join('/')));
  });
}

export function unavailable(message: string, cause?: unknown): RemudaError {
  return new RemudaError('source_unavailable', message, {}, { cause });
}

export function invalid(
  message: string,
  details: Record<string, unknown> = {},
  cause?: unknown,
): RemudaError {
  return new RemudaError('source_invalid', message, details, { cause });
}
