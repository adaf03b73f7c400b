/** Invalid input as people see it, and how strict the request schema is. */
import { describe, expect, it } from 'vitest';
import type * as z from 'zod';
import {
  BatchSubmission,
  describeValue,
  dotted,
  HarnessConfig,
  InferenceRequest,
  InvalidInputError,
  violationsOf,
} from './index.js';

const tensor = { datatype: 'FP32', shape: [1], data: [1] };

/** Findings as "path | expected | received". */
function findings(schema: z.ZodType, body: unknown, prefix: PropertyKey[] = []): string[] {
  const parsed = schema.safeParse(body);
  if (parsed.success) return [];
  return violationsOf(parsed.error, body, prefix).map((v) => `${v.path} | ${v.expected} | ${v.received}`);
}

describe('an InferenceRequest', () => {
  it.each<[string, unknown]>([
    ['tensors', { inputs: { x: tensor } }],
    ['bare values', { inputs: { a: 1, b: 'text', c: true, d: [[1, 2]], e: [] } }],
    ['items', { items: [{ id: 'one', inputs: { x: tensor } }, { inputs: { x: 2 } }] }],
    [
      'every option',
      {
        request_id: 'req_1',
        inputs: {},
        parameters: { top_k: 3 },
        stream: false,
        metadata: { priority: 0, timeout_ms: 1, result_ttl_s: 60, tags: { team: 'a' } },
        version: '2',
        device: 'cpu',
        webhook: 'https://example.org/hook',
      },
    ],
  ])('may hold %s', (_, body) => expect(findings(InferenceRequest, body)).toEqual([]));

  it.each<[string, unknown, string[]]>([
    ['nothing', null, [' | an object | null']],
    ['no inputs', {}, [' | exactly one of "inputs" and "items" | an object']],
    [
      'inputs and items',
      { inputs: {}, items: [{ inputs: {} }] },
      [' | exactly one of "inputs" and "items" | an object'],
    ],
    ['an unknown key', { inputs: {}, priority: 1 }, ['priority | no such key | an unknown key "priority"']],
    [
      'an unknown key in an item',
      { items: [{ inputs: {} }, { inputs: {}, tag: 1 }] },
      ['items[1].tag | no such key | an unknown key "tag"'],
    ],
    [
      'an unknown key in the metadata',
      { inputs: {}, metadata: { prio: 1 } },
      ['metadata.prio | no such key | an unknown key "prio"'],
    ],
    [
      'a key of Object.prototype',
      JSON.parse('{"inputs": {}, "__proto__": 1}'),
      ['__proto__ | no such key | an unknown key "__proto__"'],
    ],
    [
      'numbers out of bounds',
      { inputs: {}, metadata: { priority: 10, timeout_ms: 0.5, result_ttl_s: 0 } },
      [
        'metadata.priority | at most 9 | number 10',
        'metadata.timeout_ms | a whole number | number 0.5',
        'metadata.result_ttl_s | at least 1 | number 0',
      ],
    ],
    [
      'ids and versions of another form',
      { inputs: {}, request_id: '1 2', version: 'V2', webhook: 'here' },
      [
        'request_id | a letter, then up to 127 letters, digits, "_" or "-" | "1 2"',
        'version | a version number or an alias | "V2"',
        'webhook | an http:// or https:// URL | "here"',
      ],
    ],
    [
      'a tag whose name is too long',
      { inputs: {}, metadata: { tags: { ['k'.repeat(65)]: 'v' } } },
      [`metadata.tags.${'k'.repeat(65)} | a key of at most 64 characters | a string of 65 characters`],
    ],
    ['no items', { items: [] }, ['items | at least 1 entries | an array of 0']],
    [
      'too many items',
      { items: Array(1_001).fill({ inputs: {} }) },
      ['items | at most 1000 entries | an array of 1001'],
    ],
    [
      'null for an input',
      { inputs: { x: null } },
      ['inputs.x | an object or an array or a number or a string or true or false | null'],
    ],
    [
      'an object that is nearly a tensor: the faults of the tensor are told',
      { inputs: { x: { datatype: 'FP32', shape: [1.5, -1, 'n'], data: [1] } } },
      [
        'inputs.x.shape[0] | a whole number | number 1.5',
        'inputs.x.shape[1] | at least 0 | number -1',
        'inputs.x.shape[2] | a number | "n"',
      ],
    ],
    [
      'a datatype that there is not',
      { inputs: { x: { ...tensor, datatype: 'float' } } },
      [
        'inputs.x.datatype | one of "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES" | "float"',
      ],
    ],
    [
      'data of a kind that there is not',
      { inputs: { x: { ...tensor, data: {} } } },
      ['inputs.x.data | an array or a number or a string or true or false | an object'],
    ],
    [
      'data and b64 at once',
      { inputs: { x: { ...tensor, b64: '' } } },
      ['inputs.x | a tensor has exactly one of "data" and "b64" | an object'],
    ],
    [
      'a rank too high',
      { inputs: { x: { ...tensor, shape: Array(17).fill(1) } } },
      ['inputs.x.shape | at most 16 entries | an array of 17'],
    ],
    [
      'a dimension too large, told once',
      { inputs: { x: { ...tensor, shape: [1e300] } } },
      ['inputs.x.shape[0] | at most 9007199254740991 | number 1e+300'],
    ],
  ])('is refused with %s', (_, body, wanted) => {
    const found = findings(InferenceRequest, body);
    for (const finding of wanted) expect(found).toContain(finding);
    // A fault may bring "exactly one of" with it, where the faulty part does not count as given.
    expect(found.filter((finding) => !wanted.includes(finding) && !finding.includes('exactly one'))).toEqual(
      [],
    );
  });

  it('leaves the requests of a batch to be checked one by one', () => {
    expect(findings(BatchSubmission, { requests: [{ any: 'thing' }, 7] })).toEqual([]);
    expect(findings(BatchSubmission, { requests: [] })).toEqual([
      'requests | at least 1 entries | an array of 0',
    ]);
  });
});

describe('a HarnessConfig', () => {
  it('is filled with defaults from the kind of harness alone', () => {
    expect(HarnessConfig.parse({ harness: 'onnx' })).toMatchObject({
      model_path: 'model.onnx',
      max_batch_size: 8,
    });
  });

  it('names a key that it does not know', () => {
    expect(findings(HarnessConfig, { harness: 'onnx', max_batch: 4 }, ['model.yaml'])).toEqual([
      'model.yaml.max_batch | no such key | an unknown key "max_batch"',
    ]);
  });
});

describe('the list of findings', () => {
  it('is cut at twenty, and says how many more there are', () => {
    const body = Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, 1]));
    const found = findings(InferenceRequest, { inputs: {}, ...body });
    expect(found).toHaveLength(21);
    expect(found.at(-1)).toBe(' | fewer faults | 5 more findings like these');
  });

  it('stands in the message of the error', () => {
    const error = new InvalidInputError([
      { path: '', expected: 'a', received: 'b' },
      { path: 'x', expected: 'c', received: 'd' },
    ]);
    expect(error.message).toBe('body: expected a, received b; x: expected c, received d');
    expect(error.code).toBe('invalid_input');
  });

  it('writes paths with dots and brackets', () => {
    expect(dotted(['items', 3, 'inputs', 'x', 'data', 0, 1])).toBe('items[3].inputs.x.data[0][1]');
    expect(dotted([2, 'id'])).toBe('[2].id');
    expect(dotted([])).toBe('');
  });

  it.each([
    [undefined, 'nothing'],
    [null, 'null'],
    [[1], 'an array of 1'],
    [{}, 'an object'],
    ['short', '"short"'],
    ['x'.repeat(41), 'a string of 41 characters'],
    [1.5, 'number 1.5'],
    [true, 'boolean true'],
  ])('describes %j as %j', (value, words) => expect(describeValue(value)).toBe(words));
});
