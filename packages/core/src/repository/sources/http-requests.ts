/**
 * GET with the rules for sources: redirects are followed a few times and never from https to http, headers of the
 * spec go to the host of the spec alone, and each status is either usable, worth another try, or final.
 */
import { RemudaError } from '../../errors.js';
import type { Patience } from './patience.js';
import { invalid, unavailable } from './source-files.js';
import { shownUrl } from './source-uri.js';

export type Fetch = typeof globalThis.fetch;
/** The value of a secret by its name; undefined: there is none. */
export type Secrets = (name: string) => string | undefined;

const MOST_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const WORTH_ANOTHER_TRY = new Set([408, 425, 429]);
const SECRET = /^env:(.+)$/;

export interface HttpAnswer {
  response: Response;
  close(): void;
}

export interface HttpRequestsOptions {
  /** Headers of the spec, as they stand there. */
  headers: Readonly<Record<string, string>>;
  /** They are sent to this origin alone. */
  origin: string;
  secrets: Secrets;
  fetch: Fetch;
  patience: Patience;
}

export class HttpRequests {
  readonly #options: HttpRequestsOptions;
  readonly #headers: Record<string, string>;

  /** @throws RemudaError source_invalid when a secret is not set */
  constructor(options: HttpRequestsOptions) {
    this.#options = options;
    this.#headers = resolveSecrets(options.headers, options.secrets);
  }

  /** The answer with status 200, 206 or 416, its body unread. @throws RemudaError source_unavailable, source_invalid */
  async get(url: string, own: Record<string, string>, signal: AbortSignal): Promise<HttpAnswer> {
    const controller = new AbortController();
    const close = (): void => controller.abort();
    const both = AbortSignal.any([signal, controller.signal]);
    let at = new URL(url);
    for (let redirects = 0; ; redirects += 1) {
      const response = await this.#send(at, own, both, close);
      if (!REDIRECTS.has(response.status)) {
        if ([200, 206, 416].includes(response.status)) return { response, close };
        close();
        throw statusFault(shownUrl(at), response.status);
      }
      await response.body?.cancel();
      if (redirects === MOST_REDIRECTS)
        throw invalid(
          `${shownUrl(url)}: more than ${MOST_REDIRECTS} redirects; give the address they end at`,
        );
      at = redirectTarget(at, response.headers.get('location'));
    }
  }

  #send(at: URL, own: Record<string, string>, signal: AbortSignal, end: () => void): Promise<Response> {
    const { fetch, patience, origin } = this.#options;
    const address = shownUrl(at);
    const headers = {
      // Ranges and sizes are those of the file, not of a compressed copy.
      'accept-encoding': 'identity',
      ...(at.origin === origin ? this.#headers : {}),
      ...own,
    };
    const sent = fetch(at, { headers, redirect: 'manual', signal }).catch((cause: unknown) => {
      throw networkFault(address, cause);
    });
    return patience.within(address, sent, end);
  }
}

/** @throws RemudaError source_invalid when the target is none, or less safe than what led to it */
export function redirectTarget(from: URL, location: string | null): URL {
  const target = location === null ? null : parseUrl(location, from);
  if (target === null)
    throw invalid(`${shownUrl(from)}: a redirect to "${location ?? ''}", which is no address`);
  if (target.protocol !== 'https:' && (target.protocol !== 'http:' || from.protocol === 'https:'))
    throw invalid(
      `${shownUrl(from)}: a redirect to ${target.protocol}//${target.host} was not followed; from https: only https: is`,
    );
  return target;
}

/** A fault of the transfer, with what lies under fetch's "fetch failed". */
export function networkFault(address: string, cause: unknown): RemudaError {
  if (cause instanceof RemudaError) return cause;
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const reason = inner instanceof Error ? inner.message || inner.name : String(inner);
  return unavailable(`${address}: ${reason}`, cause);
}

function parseUrl(text: string, base: URL): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

function statusFault(address: string, status: number): RemudaError {
  const message = `${address}: the server answered ${status}`;
  if (status >= 500 || WORTH_ANOTHER_TRY.has(status)) return unavailable(message);
  if (status === 401 || status === 403) return invalid(`${message}; check the headers of the source`);
  if (status === 404 || status === 410) return invalid(`${message}; check the address, or publish the file`);
  return invalid(`${message}; expected 200 or 206`);
}

function resolveSecrets(headers: Readonly<Record<string, string>>, secrets: Secrets): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([header, value]) => {
      const name = SECRET.exec(value)?.[1];
      if (name === undefined) return [header, value];
      const secret = secrets(name);
      if (secret === undefined)
        throw invalid(
          `header ${header}: the secret "${name}" is not set; give it to the process that fetches`,
        );
      return [header, secret];
    }),
  );
}
