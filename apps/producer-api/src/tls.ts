/**
 * HTTPS of the API: the certificate and its key from files, and again when they change, since certificates are renewed
 * while servers run. A pair that does not fit is told and not used: the one before stays.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { Repeat } from '@remuda/core/fleet/repeat';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { Logger } from '@remuda/core/observability/logger';

export interface TlsPaths {
  cert: string;
  key: string;
}

/** PEM texts. */
export interface TlsFiles {
  cert: string;
  key: string;
}

const LOOK_EVERY_MS = 10_000;

/** @throws Error naming the file that cannot be read, or saying why the two are no pair */
export function readTlsFiles({ cert, key }: TlsPaths): TlsFiles {
  const read = (name: string, path: string): string => {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      throw new Error(`${name}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  };
  const files = { cert: read('REMUDA_API_TLS_CERT', cert), key: read('REMUDA_API_TLS_KEY', key) };
  checkPair(files);
  return files;
}

function checkPair(files: TlsFiles): void {
  try {
    createSecureContext(files);
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    throw new Error(`REMUDA_API_TLS_CERT and REMUDA_API_TLS_KEY are no certificate and its key: ${why}`);
  }
}

export interface CertificateWatchOptions {
  paths: TlsPaths;
  use(files: TlsFiles): void;
  logger: Logger;
  clock: Clock;
  everyMs?: number;
}

export class CertificateWatch implements Service {
  readonly name = 'certificates';
  readonly #options: CertificateWatchOptions;
  readonly #repeat: Repeat;
  #seen: string | undefined;

  constructor(options: CertificateWatchOptions) {
    this.#options = options;
    const { clock, everyMs = LOOK_EVERY_MS, logger } = options;
    const onError = (err: Error): void =>
      logger.error({ err }, 'the new certificate is not used, the one before stays');
    this.#repeat = new Repeat({ everyMs, clock, onError, turn: () => this.#look() });
  }

  start(): Promise<void> {
    return this.#repeat.start();
  }

  stop(): Promise<void> {
    return this.#repeat.stop();
  }

  async #look(): Promise<void> {
    const { paths, use, logger } = this.#options;
    const [cert, key] = await Promise.all([readFile(paths.cert, 'utf8'), readFile(paths.key, 'utf8')]);
    // By content: files of Kubernetes are links that are turned to others.
    const seen = cert + key;
    if (seen === this.#seen) return;
    const isFirst = this.#seen === undefined;
    this.#seen = seen;
    if (isFirst) return;
    checkPair({ cert, key });
    use({ cert, key });
    logger.info({}, 'the certificate has changed and is used for new connections');
  }
}
