/**
 * The Idempotency-Key of a call: a string of structured fields (RFC 9651), and what the key stands for. A creating route
 * wraps what it does in `once`; without the header that costs nothing.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '@remuda/core/canonical-json';
import { RemudaError } from '@remuda/core/errors';
import { CallOnce } from '@remuda/core/requests/idempotency';
import { InvalidInputError } from '@remuda/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ServerDeps } from './deps.js';

/** What a creating call has done. */
export interface Created<Body> {
  status: number;
  /** Those that say what was made, such as location. */
  headers: Record<string, string>;
  body: Body;
  /** Ids of the requests that were accepted. */
  requestIds: string[];
  /** Why nothing was accepted, so that the call may be made again under its key; absent or empty: something was. */
  refusals?: readonly unknown[];
}

export interface CreatingCall<Body> {
  /** What the body holds: equal for equal content, however it was written. Asked for only where there is a key. */
  content(): string;
  /** @param call undefined: the call has no key */
  make(call: CallOnce | undefined): Promise<Created<Body>>;
}

/** As it is documented. */
export const IDEMPOTENCY_KEY =
  'A string in quotes, such as "8e03978e-40d5", that is yours for this call: sent again with the same content, it makes nothing new and is answered as before.';

const MOST_CHARACTERS = 255;
const TEXT = /^ *"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)" *(?:;.*)?$/;

/**
 * Makes the call, or finds what it had made; sets status and headers of the answer. The body is the caller's to send.
 * @throws RemudaError idempotency_key_invalid, idempotency_in_progress, idempotency_mismatch, and what `make` throws
 */
export async function once<Body>(
  request: FastifyRequest,
  reply: FastifyReply,
  { useCases }: Pick<ServerDeps, 'useCases'>,
  { content, make }: CreatingCall<Body>,
): Promise<Body> {
  const header = request.headers['idempotency-key'];
  if (header === undefined) return answer(reply, await make(undefined));
  const key = keyOf(String(header));
  const { tenant } = request.caller;
  const begun = await useCases.beginOnce({ tenant, key, fingerprint: fingerprintOf(request, content) });
  if (begun instanceof CallOnce) return answer(reply, await makeAndKeep(begun, make));
  reply.header('idempotent-replayed', 'true');
  return answer(reply, { ...begun, body: JSON.parse(begun.body) as Body });
}

function answer<Body>(
  reply: FastifyReply,
  { status, headers, body }: Pick<Created<Body>, 'status' | 'headers' | 'body'>,
): Body {
  reply.code(status).headers(headers);
  return body;
}

async function makeAndKeep<Body>(call: CallOnce, make: CreatingCall<Body>['make']): Promise<Created<Body>> {
  let created: Created<Body>;
  try {
    created = await make(call);
  } catch (error) {
    await call.refused(error);
    throw error;
  }
  const { status, headers, body, requestIds, refusals = [] } = created;
  if (refusals.length > 0) await call.refused(...refusals);
  else await call.accepted({ status, headers, body: JSON.stringify(body) }, requestIds);
  return created;
}

/** @throws RemudaError idempotency_key_invalid */
function keyOf(header: string): string {
  const key = TEXT.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
  if (key !== undefined && key.length > 0 && key.length <= MOST_CHARACTERS) return key;
  const finding = {
    path: 'Idempotency-Key',
    expected: `a string in quotes of 1 to ${MOST_CHARACTERS} printable ASCII characters`,
    received: header.slice(0, 300),
  };
  throw new RemudaError(
    'idempotency_key_invalid',
    `${finding.path}: expected ${finding.expected}, received ${finding.received}`,
    { violations: [finding] },
  );
}

/** Method, path and content. What a header asks of the answer (Prefer, Accept) makes no other call. */
function fingerprintOf({ method, url }: FastifyRequest, content: () => string): string {
  const path = url.split('?', 1)[0] as string;
  return createHash('sha256')
    .update(JSON.stringify([method, path]))
    .update(content())
    .digest('base64url');
}

/** A JSON body as content of a call. @throws InvalidInputError for one that is nested too deep */
export function jsonContent(body: unknown): string {
  try {
    return canonicalJson(body);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const finding = { path: '', expected: 'a body that is nested less deep', received: error.message };
    throw new InvalidInputError([finding], 'invalid_request');
  }
}

/** Runs of bytes as content of a call. */
export function bytesContent(...runs: readonly Uint8Array[]): string {
  return runs.map((bytes) => createHash('sha256').update(bytes).digest('base64url')).join(' ');
}
