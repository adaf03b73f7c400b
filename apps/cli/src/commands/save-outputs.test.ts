import type { InferenceResult } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { filesOf } from './save-outputs.js';

const item = { status: 'succeeded', error: null, metrics: null, model_extra: {} } as const;
const outputs = {
  'sco/re': { datatype: 'FP32', shape: [2], data: [0.5, 1] },
  text: { datatype: 'BYTES', shape: [1], data: ['hello'] },
} as const;

function result(parts: object): InferenceResult {
  return {
    request_id: 'req_1',
    status: 'succeeded',
    outputs: null,
    items: null,
    ...parts,
  } as InferenceResult;
}

describe('saved outputs', () => {
  it('are arrays that NumPy reads, texts, and the rest as JSON', () => {
    const files = new Map(filesOf(result({ outputs })));
    expect([...files.keys()]).toEqual(['result.json', 'sco_re.npy', 'text.txt']);
    expect(JSON.parse(String(files.get('result.json')))).not.toHaveProperty('outputs');
    expect(Buffer.from(files.get('text.txt') as Uint8Array).toString()).toBe('hello');

    const npy = files.get('sco_re.npy') as Buffer;
    expect(npy.toString('latin1', 1, 6)).toBe('NUMPY');
    const header = npy.readUInt16LE(8);
    expect((10 + header) % 64).toBe(0);
    expect(npy.toString('latin1', 10, 10 + header)).toMatch(
      /^\{'descr': '<f4', 'fortran_order': False, 'shape': \(2,\), \} *\n$/,
    );
    expect([npy.readFloatLE(10 + header), npy.readFloatLE(14 + header)]).toEqual([0.5, 1]);
  });

  it('of items carry the place and the id of each, without a path in it', () => {
    const items = [
      { ...item, id: '../a.png', index: 0, outputs: { text: outputs.text } },
      { ...item, id: null, index: 1, outputs: null },
    ];
    expect(filesOf(result({ items })).map(([name]) => name)).toEqual(['result.json', '0-__a.png-text.txt']);
  });
});
