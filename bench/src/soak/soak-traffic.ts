/**
 * The mixed traffic of the soak: small and large tensors, images, items that fail in the run, bytes that are no image,
 * requests that are cancelled at once. Every driver waits for each tenth of its requests, so that what is open stays
 * bounded.
 */
import { readFile } from 'node:fs/promises';
import { encodeBinaryBody } from '@remuda/schemas';
import { Pool } from 'undici';
import { CLASSIFIER_ROW, sampleImages } from '../parts/classifier.js';
import { noise } from '../raw/raw-loop.js';
import type { BenchModels } from '../rig/bench-models.js';

export const SOAK_MODELS: BenchModels = {
  real: { 'text-direction-tensor': {}, 'text-direction': {} },
  tiny: ['identity-16', 'fail-on-mark'],
};

/** One kind of request; it is sent `share` times in a round. */
interface Kind {
  share: number;
  model: string;
  body: Buffer;
  headers: Record<string, string>;
  cancel?: boolean;
}

const DRIVERS = 16;
const WAIT_EVERY = 10;

/** Sends `count` requests; tells of each id as soon as it is accepted. */
export async function sendTraffic(url: string, count: number, accepted: (id: string) => void): Promise<void> {
  const kinds = (await makeKinds()).flatMap((kind) => Array.from({ length: kind.share }, () => kind));
  const pool = new Pool(url, { connections: DRIVERS, headersTimeout: 60_000 });
  let sent = 0;
  const drive = async (): Promise<void> => {
    while (sent < count) {
      const number = sent++;
      await sendOne(pool, kinds[number % kinds.length] as Kind, number % WAIT_EVERY === 0, accepted);
    }
  };
  await Promise.all(Array.from({ length: DRIVERS }, drive));
  await pool.close();
}

async function sendOne(pool: Pool, kind: Kind, wait: boolean, accepted: (id: string) => void): Promise<void> {
  const held = wait && !kind.cancel;
  const headers = held ? { ...kind.headers, prefer: 'wait=30' } : kind.headers;
  const path = `/v1/models/${kind.model}/requests`;
  const response = await pool.request({ method: 'POST', path, headers, body: kind.body });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${path} answered ${response.statusCode}: ${text}`);
  const { request_id: id } = JSON.parse(text) as { request_id: string };
  accepted(id);
  if (!kind.cancel) return;
  const answer = await pool.request({ method: 'DELETE', path: `/v1/requests/${id}` });
  await answer.body.dump();
}

async function makeKinds(): Promise<Kind[]> {
  const png = await readFile(sampleImages()[0] as string);
  const image = { model: 'text-direction', headers: { 'content-type': 'image/png' } };
  return [
    { share: 9, model: 'identity-16', ...tensorBody([1, 16]) },
    { share: 4, model: 'text-direction-tensor', ...tensorBody(CLASSIFIER_ROW) },
    { share: 3, ...image, body: png },
    { share: 1, ...image, body: Buffer.from('these are the bytes of no image') },
    { share: 1, model: 'fail-on-mark', ...tensorBody([1, 4], 666) },
    { share: 1, model: 'fail-on-mark', ...tensorBody([1, 4]) },
    { share: 1, model: 'text-direction-tensor', ...tensorBody(CLASSIFIER_ROW), cancel: true },
  ];
}

/** One row of noise named x, or of one number. */
function tensorBody(shape: number[], value?: number): Pick<Kind, 'body' | 'headers'> {
  const values = noise(1, shape);
  if (value !== undefined) values.fill(value);
  const bytes = new Uint8Array(values.buffer);
  const { body, headerLength } = encodeBinaryBody('inputs', [{ name: 'x', datatype: 'FP32', shape, bytes }]);
  return {
    body,
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(headerLength),
    },
  };
}
