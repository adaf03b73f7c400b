/** Results in their three forms: elements in JSON, base64 in JSON, binary. */
import { jsonResult } from '@remuda/core/requests/json-result';
import type { RawResult } from '@remuda/core/requests/submission';
import { InferenceResult, type RawTensor } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { binaryResult } from './result-answer.js';

const floats = (...values: number[]): RawTensor => ({
  name: 'y',
  datatype: 'FP32',
  shape: [1, values.length],
  bytes: new Uint8Array(new Float32Array(values).buffer),
});

type RawItem = RawResult['items'][number];

function item(index: number, outputs: RawTensor[] | null): RawItem {
  const error = outputs ? null : { code: 'inference_failed' as const, message: 'no', retryable: false };
  const status = outputs ? 'succeeded' : 'failed';
  return { id: `i${index}`, index, status, outputs, error, metrics: null, model_extra: {} };
}

function result(items: RawItem[], hasItems: boolean): RawResult {
  const time = '2026-01-01T00:00:00.000Z';
  return {
    request_id: 'r',
    model: 'm',
    version: '1',
    digest: 'd',
    status: 'partial',
    hasItems,
    items,
    error: null,
    metrics: null,
    model_extra: {},
    route: { device_class: 'cpu', lane: 'interactive', reasons: [] },
    attempts: 1,
    created_at: time,
    started_at: time,
    finished_at: time,
    expires_at: time,
    trace_id: 't',
  };
}

describe('as JSON', () => {
  it('a request with inputs has its outputs by name', () => {
    const answer = InferenceResult.parse(
      jsonResult(result([item(0, [floats(1, Number.NaN)])], false), 'data'),
    );
    expect(answer).toMatchObject({ outputs: { y: { shape: [1, 2], data: [1, 'NaN'] } }, items: null });
  });

  it('a request with items has an outcome for each, good or bad', () => {
    const raw = result([item(0, [floats(1)]), item(1, null)], true);
    const answer = InferenceResult.parse(jsonResult(raw, 'b64'));
    expect(answer.outputs).toBeNull();
    expect(answer.items).toMatchObject([
      { id: 'i0', outputs: { y: { b64: 'AACAPw==' } }, error: null },
      { id: 'i1', outputs: null, error: { code: 'inference_failed' } },
    ]);
  });
});

describe('binary', () => {
  function parts(raw: RawResult) {
    const { body, headerLength } = binaryResult(raw);
    const header = JSON.parse(body.subarray(0, headerLength).toString('utf8'));
    return { header, rest: new Uint8Array(body.subarray(headerLength)) };
  }

  it('has the tensors of one result behind the header', () => {
    const { header, rest } = parts(result([item(0, [floats(1, 2)])], false));
    expect(header.outputs).toEqual([
      { name: 'y', datatype: 'FP32', shape: [1, 2], parameters: { binary_data_size: 8 } },
    ]);
    expect([...new Float32Array(rest.buffer)]).toEqual([1, 2]);
  });

  it('has those of all items, in their order', () => {
    const { header, rest } = parts(result([item(0, [floats(1)]), item(1, null), item(2, [floats(3)])], true));
    expect(header.items.map(({ outputs }: { outputs: unknown[] | null }) => outputs?.length ?? null)).toEqual(
      [1, null, 1],
    );
    expect([...new Float32Array(rest.buffer)]).toEqual([1, 3]);
  });
});
