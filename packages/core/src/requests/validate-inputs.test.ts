/** Inputs against a signature: what fits comes out in order, what does not is told with its place. */
import {
  type FrameTensorBytes,
  type InputValue,
  InvalidInputError,
  joinBytesElements,
  LIMITS,
  type SignatureTensor,
  splitBytesElements,
} from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import type { GivenInput } from './input-tensor.js';
import { rowsOf, validateInputs, validateItems } from './validate-inputs.js';

function tensor(
  name: string,
  datatype: SignatureTensor['datatype'],
  shape: (number | string)[],
): SignatureTensor {
  const axis = shape.indexOf('N');
  return { name, datatype, shape, batch_axis: axis < 0 ? null : axis, kind: 'tensor' };
}

const pair = { inputs: [tensor('x', 'FP32', ['N', 3]), tensor('mask', 'INT64', ['N', 'T'])] };
const row = { inputs: [tensor('x', 'FP32', ['N', 3])] };
const speech = {
  inputs: [
    tensor('input', 'FP32', ['N', 4]),
    tensor('state', 'FP32', [2, 'N', 2]),
    tensor('sr', 'INT64', []),
  ],
};
const text = { inputs: [tensor('words', 'BYTES', ['N'])] };
const image = { inputs: [{ ...tensor('image', 'BYTES', ['N']), kind: 'image' as const }] };

function values(inputs: Record<string, InputValue>): GivenInput[] {
  return Object.entries(inputs).map(([name, value]) => ({ name, value, path: ['inputs', name] }));
}

function frame(name: string, part: Partial<FrameTensorBytes>, index = 0): GivenInput {
  const shape = part.shape ?? [1, 3];
  const bytes = part.bytes ?? new Uint8Array(shape.reduce((size, dim) => size * dim, 4));
  return { name, path: ['inputs', index], tensor: { name, datatype: 'FP32', ...part, shape, bytes } };
}

function findings(given: GivenInput[], signature: { inputs: SignatureTensor[] }) {
  try {
    validateInputs(given, signature, ['inputs']);
  } catch (error) {
    if (error instanceof InvalidInputError) return error.violations;
    throw error;
  }
  throw new Error('nothing was refused');
}

const floats = (bytes: Uint8Array) => [...new Float32Array(new Uint8Array(bytes).buffer)];

describe('inputs that fit', () => {
  it('come out in the order of the signature', () => {
    const tensors = validateInputs(values({ mask: [[1, 1]], x: [[1, 2, 3]] }), pair, ['inputs']);
    expect(tensors.map(({ name }) => name)).toEqual(['x', 'mask']);
  });

  it('of a binary body are the same bytes, not a copy', () => {
    const bytes = new Uint8Array(24);
    const [x] = validateInputs([frame('x', { shape: [2, 3], bytes })], row, ['inputs']);
    expect(x?.bytes).toBe(bytes);
    expect(x?.shape).toEqual([2, 3]);
  });

  it('written bare take datatype and shape from the signature and the nesting', () => {
    const [x] = validateInputs(
      values({
        x: [
          [1, 2, 3],
          [4, 5, 6],
        ],
      }),
      row,
      ['inputs'],
    );
    expect(x).toMatchObject({ datatype: 'FP32', shape: [2, 3] });
    expect(floats(x?.bytes as Uint8Array)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('written bare without the batch axis are one row, wherever that axis stands', () => {
    const given = values({
      input: [1, 2, 3, 4],
      state: [
        [1, 2],
        [3, 4],
      ],
      sr: 16_000,
    });
    const tensors = validateInputs(given, speech, ['inputs']);
    expect(tensors.map(({ shape }) => shape)).toEqual([[1, 4], [2, 1, 2], []]);
    expect(floats(tensors[1]?.bytes as Uint8Array)).toEqual([1, 2, 3, 4]);
    expect(rowsOf(tensors, speech)).toBe(1);
  });

  it('that are image files become BYTES, one element each', () => {
    const files = [Buffer.from('one\0'), Buffer.from([0xff, 0xd8])];
    const [made] = validateInputs([{ name: 'image', path: ['inputs', 'image'], files }], image, ['inputs']);
    expect(made).toMatchObject({ datatype: 'BYTES', shape: [2] });
    expect(splitBytesElements(made?.bytes as Uint8Array).map((file) => file.length)).toEqual([4, 2]);
  });
});

describe('inputs that do not fit', () => {
  it.each<[string, GivenInput[], { inputs: SignatureTensor[] }, string, RegExp, RegExp]>([
    [
      'unknown name',
      values({ x: [1, 2, 3], mask: [1], mesk: 1 }),
      pair,
      'inputs.mesk',
      /did you mean "mask"/,
      /"mesk"/,
    ],
    ['missing name', values({ x: [1, 2, 3] }), pair, 'inputs.mask', /^INT64 \[N, T\]$/, /nothing/],
    ['doubled name', [frame('x', {}), frame('x', {}, 1)], row, 'inputs[1]', /once/, /"x" a second time/],
    [
      'datatype',
      [frame('x', { datatype: 'INT32' })],
      row,
      'inputs[0].datatype',
      /^FP32 \[N, 3\]$/,
      /^INT32$/,
    ],
    ['rank', [frame('x', { shape: [3] })], row, 'inputs[0].shape', /2 axes/, /1 axes \[3\]/],
    ['fixed size', [frame('x', { shape: [1, 4] })], row, 'inputs[0].shape[1]', /^3 /, /^4$/],
    ['zero rows', [frame('x', { shape: [0, 3] })], row, 'inputs[0].shape[0]', /at least 1 row/, /0 rows/],
    ['no rows in a bare value', values({ x: [] }), row, 'inputs.x', /at least 1 row/, /0 rows/],
    [
      'too many rows',
      [frame('x', { shape: [LIMITS.rows + 1, 3], bytes: new Uint8Array() })],
      row,
      'inputs[0].shape[0]',
      /at most 100000/,
      /100001/,
    ],
    [
      'nesting',
      values({ x: [[[1, 2, 3]]] }),
      row,
      'inputs.x',
      /nested 2 deep.*or 1 for a single row/,
      /3 levels/,
    ],
    ['bare fixed size', values({ x: [[1, 2]] }), row, 'inputs.x', /^3 /, /^2$/],
    [
      'ragged',
      values({
        x: [
          [1, 2, 3],
          [4, 5],
        ],
      }),
      row,
      'inputs.x[1]',
      /3 entries/,
      /2 entries/,
    ],
    ['an element', values({ x: [[1, 2, 'a']] }), row, 'inputs.x[0][2]', /a number/, /"a"/],
    ['null', values({ x: [[1, null as never, 3]] }), row, 'inputs.x[0][1]', /a number/, /null/],
    [
      'element count',
      values({ x: { datatype: 'FP32', shape: [1, 3], data: [1] } }),
      row,
      'inputs.x.data',
      /3 elements/,
      /1 elements/,
    ],
    [
      'byte length',
      values({ x: { datatype: 'FP32', shape: [1, 3], b64: 'AAAA' } }),
      row,
      'inputs.x.b64',
      /12 bytes/,
      /3 bytes/,
    ],
    [
      'base64',
      values({ x: { datatype: 'FP32', shape: [1, 3], b64: 'A*==' } }),
      row,
      'inputs.x.b64',
      /base64/,
      /\*/,
    ],
    [
      'a lossy integer',
      values({ x: [1, 2, 3], mask: [[2 ** 53]] }),
      pair,
      'inputs.mask[0][0]',
      /decimal string/,
      /9007199254740992/,
    ],
    ['NUL in text', values({ words: ['a\0b'] }), text, 'inputs.words[0]', /NUL/, /NUL/],
    [
      'an image for a tensor',
      [{ name: 'x', path: ['inputs', 'x'], files: [Buffer.from('a')] }],
      row,
      'inputs.x',
      /FP32/,
      /image/,
    ],
    [
      'an empty image',
      [{ name: 'image', path: ['inputs', 'image'], files: [Buffer.alloc(0)] }],
      image,
      'inputs.image',
      /image file/,
      /0 bytes/,
    ],
    ['a number for an image', values({ image: 1 }), image, 'inputs.image', /image file/, /number 1/],
  ])('are refused: %s', (_, given, signature, path, expected, received) => {
    const [first] = findings(given, signature);
    expect(first).toMatchObject({ path });
    expect(first?.expected).toMatch(expected);
    expect(first?.received).toMatch(received);
  });

  it('are refused when text is not UTF-8, which an image need not be', () => {
    const bytes = joinBytesElements([Buffer.from([0xff, 0, 0xfe])]);
    const given = (name: string) => [frame(name, { datatype: 'BYTES', shape: [1], bytes })];
    const broken = joinBytesElements([Buffer.from([0xff])]);
    expect(findings([frame('words', { datatype: 'BYTES', shape: [1], bytes: broken })], text)).toMatchObject([
      { path: 'inputs[0][0]', expected: 'UTF-8 text' },
    ]);
    expect(validateInputs(given('image'), image, ['inputs'])).toHaveLength(1);
  });

  it('are refused when their rows differ', () => {
    const given = values({
      input: [[1, 2, 3, 4]],
      state: [
        [
          [1, 2],
          [1, 2],
        ],
        [
          [1, 2],
          [1, 2],
        ],
      ],
      sr: 1,
    });
    expect(findings(given, speech)).toEqual([
      { path: 'inputs.state', expected: '1 rows, as "input" has', received: '2 rows' },
    ]);
  });

  it('are refused when axes of one name differ in size', () => {
    const signature = { inputs: [tensor('ids', 'FP32', ['N', 'T']), tensor('mask', 'FP32', ['N', 'T'])] };
    const given = [frame('ids', { shape: [1, 5] }), frame('mask', { shape: [1, 7] }, 1)];
    expect(findings(given, signature)).toMatchObject([
      { path: 'inputs[1].shape[1]', received: '7 (axis 1)' },
    ]);
  });

  it('are told of all at once', () => {
    const given = values({ x: [[1, 2]], mask: { datatype: 'FP32', shape: [1], data: [1] } });
    expect(findings(given, pair).map(({ path }) => path)).toEqual(['inputs.x', 'inputs.mask.datatype']);
  });
});

describe('the items of a request', () => {
  const item = (index: number, shape: number[]) => ({
    id: `i${index}`,
    path: ['items', index, 'inputs'],
    inputs: [{ ...frame('x', { shape, bytes: new Uint8Array() }), path: ['items', index, 'inputs', 0] }],
  });

  it('keep their ids and their order', () => {
    const submitted = validateItems([item(0, [1, 3]), item(1, [2, 3])], row);
    expect(submitted.map(({ id, tensors }) => [id, rowsOf(tensors, row)])).toEqual([
      ['i0', 1],
      ['i1', 2],
    ]);
  });

  it('tell each fault with the place of its item', () => {
    expect(() => validateItems([item(0, [1, 4]), item(1, [1, 3]), item(2, [3])], row)).toThrow(
      /items\[0\]\.inputs\[0\]\.shape\[1\].*items\[2\]\.inputs\[0\]\.shape/,
    );
  });

  it('may not have more rows together than a request', () => {
    const half = LIMITS.rows / 2 + 1;
    expect(() => validateItems([item(0, [half, 3]), item(1, [half, 3])], row)).toThrow(
      /^items: expected at most 100000/,
    );
  });
});

it('checks a binary tensor without a look at its bytes', () => {
  const timeOf = (rows: number): number => {
    const given = [frame('x', { shape: [rows, 3], bytes: new Uint8Array(rows * 12) })];
    const began = performance.now();
    for (let i = 0; i < 1_000; i++) validateInputs(given, row, ['inputs']);
    return performance.now() - began;
  };
  const rounds = Array.from({ length: 10 }, () => [timeOf(8), timeOf(80_000)] as const);
  const small = Math.min(...rounds.map(([time]) => time));
  const large = Math.min(...rounds.map(([, time]) => time));
  // Ten thousand times the bytes; to copy them would take hundreds of times as long.
  expect(large).toBeLessThan(20 * small);
});
