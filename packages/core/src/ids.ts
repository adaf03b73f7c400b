/** Every identifier of Remuda is made here. */
import { createHash, randomUUID } from 'node:crypto';
import { customAlphabet } from 'nanoid';

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';
const twenty = customAlphabet(ALPHABET, 20);
const eight = customAlphabet(ALPHABET, 8);
const twelve = customAlphabet(ALPHABET, 12);
const secret = customAlphabet(`${ALPHABET}ABCDEFGHIJKLMNOPQRSTUVWXYZ`, 43);

/** req_ and 103 random bits: no two servers need to agree. */
export const newRequestId = (): string => `req_${twenty()}`;
/** From which a call that is made once draws the ids of its requests. */
export const newSeed = (): string => twenty();
/** The id of a request by its place in such a call: the same one in every process that makes the call. */
export function reservedRequestId(seed: string, index: number): string {
  const number = BigInt(`0x${createHash('sha256').update(`${seed}:${index}`).digest('hex')}`);
  return `req_${number.toString(36).padStart(50, '0').slice(-20)}`;
}
/** Tells one acceptance of a request id from another (see store/request-store.ts). */
export const newNonce = (): string => eight();
export const newBatchId = (): string => `bat_${eight()}${eight()}`;
/** Of a bulk job; that of a batch of rows is newBatchId. */
export const newBulkJobId = (): string => `batch_${twenty()}`;
/** The same for every process that makes the call. @param requestId as reservedRequestId gives it */
export const bulkJobIdFrom = (requestId: string): string => requestId.replace(/^req_/, 'batch_');
/** Begins with the time (Unix milliseconds), so that its place in a list is known when the file has gone. */
export const newBulkFileId = (now: number): string => `file-${now.toString(36).padStart(9, '0')}${twelve()}`;
/** When a file was made; null: its id does not say. */
export function bulkFileTime(id: string): number | null {
  const [, time] = /^file-([0-9a-z]{9})[0-9a-z]{12}$/.exec(id) ?? [];
  return time === undefined ? null : Number.parseInt(time, 36);
}
export const newEndpointId = (): string => `whe_${eight()}${eight()}`;
export const newKeyId = (): string => twelve();
/** Of an API key: 43 letters and digits, 256 random bits. */
export const newKeySecret = (): string => secret();
export const newWorkerId = (host: string, pid: number): string =>
  `${host.replace(/[^A-Za-z0-9-]/g, '-').slice(0, 40)}-${pid}-${eight()}`;

/** A W3C trace id: 32 hex digits, 122 bits of them random. A UUID draws from a pool, which randomBytes does not. */
export const newTraceId = (): string => randomUUID().replaceAll('-', '');

/** The trace id of a W3C traceparent header (version 00), or undefined when it is none. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  const match = /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? '');
  return match && match[1] !== '0'.repeat(32) ? match[1] : undefined;
}
