/**
 * One attempt: a POST over a connection of its own, bounded as a whole, of whose answer only the status counts. A
 * connection for each attempt costs a handshake; in return nothing of a host outlives its attempt, a connection that
 * the host has just closed is never mistaken for a failed delivery, and cutting the attempt off cuts everything.
 */
import type { WebhookAttempt } from '@remuda/schemas';
import { Client } from 'undici';
import type { Clock } from '../lifecycle/clock.js';
import { type AllowedAddresses, refusedUrl } from './address-rules.js';
import { AddressRefusedError, checkedLookup, type Resolve } from './connect-lookup.js';

export interface Sending {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export interface Sent {
  outcome: WebhookAttempt['outcome'] | 'cut_off';
  status: number | null;
  error: string | null;
  retryAfter: string | undefined;
}

export interface SenderOptions {
  allowed: AllowedAddresses;
  clock: Clock;
  /** Of the whole attempt. Default 15 s. */
  timeoutMs?: number;
  /** Default: DNS. */
  resolve?: Resolve;
}

const TIMEOUT_MS = 15_000;
/** What of an answer's body is taken off the line, so that the host can end well, and how long that may take. */
const ANSWER_BYTES = 16 * 1024;
const ANSWER_MS = 1_000;
const MOST_ERROR_LETTERS = 300;

class TimeUpError extends Error {}
class CutOffError extends Error {}

export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #lookup: ReturnType<typeof checkedLookup>;
  readonly #underWay = new Set<(error: Error) => void>();
  #closed = false;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#lookup = checkedLookup(options.allowed, options.resolve);
  }

  async send(sending: Sending): Promise<Sent> {
    const { allowed, timeoutMs = TIMEOUT_MS, clock } = this.#options;
    if (this.#closed) return failed('cut_off', 'the worker stops');
    const url = new URL(sending.url);
    const refused = refusedUrl(url, allowed);
    if (refused !== undefined) return failed('address_refused', refused);
    const client = new Client(url.origin, {
      connect: { lookup: this.#lookup, timeout: timeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    let cut: (error: Error) => void = () => {};
    const cutOff = new Promise<never>((_, reject) => {
      cut = reject;
    });
    const cancel = clock.after(timeoutMs, () =>
      cut(new TimeUpError(`no answer within ${timeoutMs / 1000} s`)),
    );
    this.#underWay.add(cut);
    try {
      return await Promise.race([this.#post(client, url, sending), cutOff]);
    } catch (error) {
      return explained(error);
    } finally {
      cancel();
      this.#underWay.delete(cut);
      // Whatever is still under way, a connect included, ends with it.
      await client.destroy().catch(() => {});
    }
  }

  /** Ends every attempt under way, and makes no more; none of them counts. */
  cutAll(): void {
    this.#closed = true;
    for (const cut of this.#underWay) cut(new CutOffError('the worker stops'));
  }

  async #post(client: Client, url: URL, { headers, body }: Sending): Promise<Sent> {
    const answer = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers,
      body,
      reset: true,
    });
    await this.#drain(answer.body);
    const retryAfter = answer.headers['retry-after'];
    return {
      ...ofStatus(answer.statusCode),
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
    };
  }

  async #drain(body: { dump(options: { limit: number }): Promise<void> }): Promise<void> {
    let cancel = (): void => {};
    const enough = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(ANSWER_MS, resolve);
    });
    // An answer that breaks off behind its status is an answer.
    await Promise.race([body.dump({ limit: ANSWER_BYTES }).catch(() => {}), enough]);
    cancel();
  }
}

function ofStatus(status: number): Pick<Sent, 'outcome' | 'status' | 'error'> {
  if (status >= 200 && status < 300) return { outcome: 'delivered', status, error: null };
  if (status === 410)
    return { outcome: 'gone', status, error: 'answered 410: nothing is wanted here any more' };
  if (status >= 300 && status < 400) {
    return { outcome: 'redirect', status, error: `answered ${status}: redirects are not followed` };
  }
  return { outcome: 'answer', status, error: `answered ${status}: expected 2xx` };
}

function explained(error: unknown): Sent {
  if (error instanceof CutOffError) return failed('cut_off', error.message);
  if (error instanceof TimeUpError) return failed('timeout', error.message);
  const chain = chainOf(error);
  const refused = chain.find((link) => link instanceof AddressRefusedError);
  if (refused) return failed('address_refused', refused.message);
  const timedOut = chain.find((link) => /_TIMEOUT$|^ETIMEDOUT$/.test(codeOf(link) ?? ''));
  const [first = new Error('unknown')] = chain;
  const told = first.message || codeOf(first) || codeOf(chain[1]) || 'the connection failed';
  return failed(timedOut ? 'timeout' : 'connection', told);
}

/** The error, its causes, and those of several connects side by side. */
function chainOf(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth > 4) return [];
  const { cause, errors = [] } = error as Error & { cause?: unknown; errors?: unknown[] };
  return [error, ...[cause, ...errors].flatMap((inner) => chainOf(inner, depth + 1))];
}

function codeOf(error: Error | undefined): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

function failed(outcome: Sent['outcome'], error: string): Sent {
  return { outcome, status: null, error: error.slice(0, MOST_ERROR_LETTERS), retryAfter: undefined };
}
