/**
 * Reads a body of bytes into one buffer, with room in front: a binary body whose header can stay as it came becomes
 * the stored frame in place (binary-body.ts), where framing would copy it once more.
 */

import type { Readable } from 'node:stream';
import { FRAME_PREFIX_BYTES } from '@remuda/schemas';
import { errorCodes, type FastifyRequest } from 'fastify';

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Answers with a buffer of FRAME_PREFIX_BYTES free bytes and the body behind them. It is made when the last bytes are
 * there: made with the first ones it would be old by the end, and V8 frees old buffers only by collecting everything,
 * which cost twice as much as it saved.
 */
export function readBodyWithRoom(
  { headers }: FastifyRequest,
  payload: Readable,
  maxBytes: number,
  done: Done,
): void {
  const length = Number(headers['content-length']);
  if (length > maxBytes) {
    done(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    return;
  }
  const chunks: Buffer[] = [];
  let received = 0;
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    received += chunk.length;
    if (received > maxBytes) finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
  };
  const onEnd = (): void => finish(null);
  const onError = (error: Error): void => finish(Object.assign(error, { statusCode: 400 }));
  const finish = (error: Error | null): void => {
    payload.off('data', onData).off('end', onEnd).off('error', onError);
    if (error) done(error);
    else if (received < length) done(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH());
    else done(null, joinWithRoom(chunks, received));
  };
  payload.on('data', onData).on('end', onEnd).on('error', onError);
}

function joinWithRoom(chunks: readonly Buffer[], bytes: number): Buffer {
  const joined = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + bytes);
  let at = FRAME_PREFIX_BYTES;
  for (const chunk of chunks) at += chunk.copy(joined, at);
  return joined;
}
