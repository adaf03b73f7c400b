/** The binary layout: over HTTP, where nothing is trusted, and in the store, where our own frames are. */
import { describe, expect, it } from 'vitest';
import {
  cutTensors,
  decodeFrame,
  encodeBinaryBody,
  encodeFrame,
  InvalidInputError,
  type RawTensor,
  refuseLeftOver,
  splitBinaryBody,
} from './index.js';

const a: RawTensor = { name: 'a', datatype: 'UINT8', shape: [3], bytes: Uint8Array.of(1, 2, 3) };
const b: RawTensor = { name: 'b ä', datatype: 'INT16', shape: [1, 1], bytes: Uint8Array.of(255, 255) };

function refused(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const [first] = error.violations;
    return `${error.code}: ${first?.path} | ${first?.expected} | ${first?.received}`;
  }
  return 'taken';
}

describe('a stored frame', () => {
  it('is a length, a JSON header with the extras, and the bytes in order', () => {
    const frame = encodeFrame('outputs', [a, b], { note: 'x' });
    const headerBytes = frame.readUInt32LE(0);
    expect(JSON.parse(frame.toString('utf8', 4, 4 + headerBytes))).toEqual({
      note: 'x',
      outputs: [
        { name: 'a', datatype: 'UINT8', shape: [3], parameters: { binary_data_size: 3 } },
        { name: 'b ä', datatype: 'INT16', shape: [1, 1], parameters: { binary_data_size: 2 } },
      ],
    });
    expect([...frame.subarray(4 + headerBytes)]).toEqual([1, 2, 3, 255, 255]);
  });

  it('gives tensors and extras back, as views into the frame', () => {
    const frame = encodeFrame('inputs', [a, b], { parameters: { top_k: 3 } });
    const { tensors, extras } = decodeFrame(frame);
    expect(tensors.map((tensor) => ({ ...tensor, bytes: [...tensor.bytes] }))).toEqual([
      { ...a, bytes: [1, 2, 3] },
      { ...b, bytes: [255, 255] },
    ]);
    expect(tensors[0]?.bytes.buffer).toBe(frame.buffer);
    expect(extras).toEqual({ parameters: { top_k: 3 } });
  });

  it('may hold no tensors at all', () => {
    expect(decodeFrame(encodeFrame('outputs', [], { error: 'e' }))).toEqual({
      tensors: [],
      extras: { error: 'e' },
    });
  });
});

describe('a binary body', () => {
  const { body, headerLength } = encodeBinaryBody('inputs', [a, b]);

  it('is split at its header', () => {
    const { header, rest } = splitBinaryBody(body, String(headerLength));
    expect((header as { inputs: unknown[] }).inputs).toHaveLength(2);
    expect([...rest]).toEqual([1, 2, 3, 255, 255]);
  });

  it.each(['', '-1', '1.5', '0x10', '1', String(body.length + 1), '99999999999'])(
    'is refused with a header length of %j',
    (length) => {
      expect(refused(() => splitBinaryBody(body, length))).toBe(
        `malformed_frame: Inference-Header-Content-Length | a whole number from 2 to the length of the body (${body.length}) | ${JSON.stringify(length)}`,
      );
    },
  );

  it('is refused where the length cuts the header', () => {
    expect(refused(() => splitBinaryBody(body, String(headerLength - 1)))).toContain('malformed_json: ');
  });
});

describe('cutting tensors out of a body', () => {
  const described = (binary_data_size: number, more: object = {}): unknown[] => [
    { name: 'x', datatype: 'FP32', shape: [2], parameters: { binary_data_size }, ...more },
  ];
  const cut = (tensors: unknown, bytes = 8): string =>
    refused(() => cutTensors(tensors, new Uint8Array(bytes), ['inputs']));

  it('takes tensors behind one another, and JSON data among them', () => {
    const mixed = [
      { name: 'y', datatype: 'UINT8', shape: [1], data: [1] },
      ...described(8),
      { name: 'z', datatype: 'UINT8', shape: [1], parameters: { binary_data_size: 1 } },
    ];
    const { tensors, end } = cutTensors(mixed, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 9), ['inputs']);
    expect(tensors.map((tensor) => tensor.bytes?.byteLength)).toEqual([undefined, 8, 1]);
    expect(tensors[2]?.bytes).toEqual(Uint8Array.of(9));
    expect(end).toBe(9);
  });

  it('carries on where the tensors of the item before ended', () => {
    const { tensors, end } = cutTensors(described(8), new Uint8Array(16).fill(1, 8), ['inputs'], 8);
    expect(tensors[0]?.bytes?.[0]).toBe(1);
    expect(end).toBe(16);
  });

  it.each<[string, unknown, number, string]>([
    [
      'a size other than the shape says',
      described(4),
      8,
      'malformed_frame: inputs[0].parameters.binary_data_size | 8 bytes (FP32 [2]) | 4 bytes',
    ],
    [
      'more bytes promised than there are',
      described(8),
      7,
      'malformed_frame: inputs[0].parameters.binary_data_size | at most the 7 bytes that are left behind the header | 8 bytes',
    ],
    [
      'data and bytes at once',
      described(8, { data: [1, 2] }),
      8,
      'malformed_frame: inputs[0] | one of "data" and parameters.binary_data_size | both',
    ],
    [
      'neither data nor bytes',
      [{ name: 'x', datatype: 'FP32', shape: [2] }],
      8,
      'malformed_frame: inputs[0] | one of "data" and parameters.binary_data_size | neither',
    ],
    [
      'BYTES whose lengths do not add up',
      [{ name: 'x', datatype: 'BYTES', shape: [1], parameters: { binary_data_size: 3 } }],
      3,
      'invalid_input: inputs[0][0] | a uint32 length and that many bytes for each BYTES element | 3 bytes left over',
    ],
    [
      'an unknown key',
      described(8, { dtype: 'FP32' }),
      8,
      'invalid_request: inputs[0].dtype | no such key | an unknown key "dtype"',
    ],
    ['something that is no list', { name: 'x' }, 8, 'invalid_request: inputs | an array | an object'],
  ])('%s', (_, tensors, bytes, wanted) => expect(cut(tensors, bytes)).toBe(wanted));

  it('looks at BOOL bytes', () => {
    const bool = [{ name: 'x', datatype: 'BOOL', shape: [2], parameters: { binary_data_size: 2 } }];
    expect(refused(() => cutTensors(bool, Uint8Array.of(1, 2), ['inputs']))).toBe(
      'invalid_input: inputs[0][1] | 0 or 1 (BOOL) | 2',
    );
  });

  it('refuses bytes that no tensor accounts for', () => {
    expect(refused(() => refuseLeftOver(new Uint8Array(9), 8))).toContain('| 9 bytes');
    expect(refused(() => refuseLeftOver(new Uint8Array(8), 8))).toBe('taken');
  });
});
