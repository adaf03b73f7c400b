/** Bodies as people send them by mistake, and how each of them is told: the tables stand in the bad-*.test.ts files. */
import { expect } from 'vitest';
import type { CallInit, Rig } from './rig.js';

export const JSON_TYPE = { 'content-type': 'application/json' };
export const json = (body: unknown): CallInit => ({
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: JSON_TYPE,
});
export const inputs = (x: unknown): CallInit => json({ inputs: { x } });
export const fp32 = (part: object): CallInit => inputs({ datatype: 'FP32', shape: [1, 3], ...part });

export function frame(header: unknown, bytes = 12, length?: string): CallInit {
  const text = typeof header === 'string' ? header : JSON.stringify(header);
  return {
    body: Buffer.concat([Buffer.from(text), Buffer.alloc(bytes)]),
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': length ?? String(Buffer.byteLength(text)),
    },
  };
}
export const x = { name: 'x', datatype: 'FP32', shape: [1, 3], parameters: { binary_data_size: 12 } };

export function form(...parts: [name: string, value: string | Blob, filename?: string][]): CallInit {
  const body = new FormData();
  for (const [name, value, filename] of parts) {
    if (typeof value === 'string') body.append(name, value);
    else body.append(name, value, filename);
  }
  return { body };
}
export const file = new Blob(['not really an image'], { type: 'image/png' });

export type Case = [
  what: string,
  model: string,
  init: CallInit,
  status: number,
  code: string,
  path?: string,
  detail?: RegExp,
];

/** Sends the body of a case and looks at the problem that comes back. */
export async function expectRefusal(
  rig: Rig,
  [, target, init, status, code, path, detail]: Case,
): Promise<void> {
  const [model, query] = target.split('?');
  const url = `/v1/models/${model}/requests${query === undefined ? '' : `?${query}`}`;
  const answer = await rig.call('POST', url, init);
  const common = { title: expect.any(String), trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) };
  expect(answer.body).toMatchObject({ status, code, ...common });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  if (path !== undefined) expect(answer.body.errors?.[0]?.path).toBe(path);
  if (detail) expect(answer.body.detail).toMatch(detail);
}

export async function expectNothingStored(rig: Rig): Promise<void> {
  const { body } = await rig.call('GET', '/v1/requests');
  expect(body.requests).toEqual([]);
}
