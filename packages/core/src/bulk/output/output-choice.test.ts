/** What is chosen of outputs, and that the runner and the encoder agree on it. */
import type { SignatureTensor } from '@remuda/schemas';
import { joinBytesElements, toHalfBits } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import type { OutputChoice, OutputColumn } from '../chunk.js';
import { chooseOutputs, chosenSignature } from './output-choice.js';
import { createEncoder } from './output-encoder.js';
import { bigOutput, joined, output, resultOf } from './results.fixture.js';

const INT64 = 'INT64';

function values({ datatype, bytes }: OutputColumn): unknown[] {
  const { buffer } = new Uint8Array(bytes);
  if (datatype === INT64) return Array.from(new BigInt64Array(buffer), Number);
  if (datatype === 'FP16') return Array.from(new Uint16Array(buffer));
  return Array.from(datatype === 'INT32' ? new Int32Array(buffer) : new Float32Array(buffer));
}

function chosen(outputs: OutputColumn[], choice: OutputChoice): object {
  return Object.fromEntries(
    chooseOutputs(outputs, choice).map((column) => [
      column.name,
      { shape: column.shape ?? column.shapes, values: values(column) },
    ]),
  );
}

const scores = output('y', 'FP32', [3], [0.1, 0.7, 0.2, Number.NaN, 0.3, 0.3]);

describe('of outputs', () => {
  it('argmax is the place of the largest element: of equals the first, never NaN', () => {
    expect(chosen([scores], { argmax: true })).toEqual({ y_argmax: { shape: [], values: [1, 1] } });
    const nothing = output('y', 'FP32', [2], [Number.NaN, Number.NaN, Number.NEGATIVE_INFINITY, Number.NaN]);
    expect(chosen([nothing], { argmax: true })).toEqual({ y_argmax: { shape: [], values: [-1, 0] } });
  });

  it('the k largest come with their places, NaN behind all numbers', () => {
    expect(chosen([scores], { topK: 2, argmax: true })).toEqual({
      y_top_values: { shape: [2], values: [0.7, 0.2, 0.3, 0.3].map(Math.fround) },
      y_top_indices: { shape: [2], values: [1, 2, 1, 2] },
      y_argmax: { shape: [], values: [1, 1] },
    });
    expect(chosen([scores], { topK: 9 })).toMatchObject({
      y_top_indices: { shape: [3], values: [1, 2, 0, 1, 2, 0] },
    });
  });

  it('is chosen along the last axis, of rows of several lengths too', () => {
    const grid = output('g', 'INT32', [2, 2], [1, 2, 4, 3]);
    expect(chosen([grid], { argmax: true })).toEqual({ g_argmax: { shape: [2], values: [1, 0] } });
    const ragged = output('r', 'INT32', null, [1, 2, 3, 9, 8], [[1, 3], null, [2, 1]]);
    expect(chosen([ragged], { argmax: true, topK: 2 })).toEqual({
      r_top_values: { shape: [[1, 2], null, [2, 1]], values: [3, 2, 9, 8] },
      r_top_indices: { shape: [[1, 2], null, [2, 1]], values: [2, 1, 0, 0] },
      r_argmax: { shape: [[1], null, [2]], values: [2, 0, 0] },
    });
  });

  it('half floats and 64-bit integers are compared as numbers', () => {
    const half = output('h', 'FP16', [2], [toHalfBits(-2), toHalfBits(-1)]);
    expect(chosen([half], { topK: 1 })).toEqual({
      h_top_values: { shape: [1], values: [toHalfBits(-1)] },
      h_top_indices: { shape: [1], values: [1] },
    });
    const big = bigOutput('b', [2], [2n ** 53n, 2n ** 53n + 1n]);
    expect(chosen([big], { argmax: true })).toEqual({ b_argmax: { shape: [], values: [1] } });
  });

  it('scalars and BYTES stay as they are', () => {
    const label = bigOutput('label', [], [4n]);
    const text: OutputColumn = {
      name: 't',
      datatype: 'BYTES',
      shape: [2],
      bytes: joinBytesElements([Buffer.from('a'), Buffer.from('b')]),
    };
    expect(chooseOutputs([label, text], { argmax: true, topK: 1 })).toEqual([label, text]);
  });

  it('only those named are kept, in that order', () => {
    const other = output('z', 'FP32', [1], [1, 1]);
    expect(chooseOutputs([scores, other], { outputs: ['z', 'y'] })).toEqual([other, scores]);
  });
});

describe('the signature of what is chosen', () => {
  const tensor = (
    name: string,
    shape: SignatureTensor['shape'],
    datatype: SignatureTensor['datatype'] = 'FP32',
  ): SignatureTensor => ({
    name,
    datatype,
    shape,
    batch_axis: 0,
    kind: 'tensor',
  });

  it('refuses a name that no output has, and says which there are', () => {
    const signature = [tensor('probabilities', ['N', 2]), tensor('label', ['N'])];
    expect(() => chosenSignature(signature, { outputs: ['probabilites'] })).toThrow(
      'output.outputs: the model has no output "probabilites", it has "probabilities", "label"; did you mean "probabilities"?',
    );
  });

  it.each<OutputChoice>([{}, { argmax: true }, { topK: 2 }, { topK: 2, argmax: true, outputs: ['y', 'r'] }])(
    'is what the runner makes of answers: %j',
    async (choice) => {
      const signature = [
        tensor('y', ['N', 3]),
        tensor('r', ['N', 'T', 2], 'INT32'),
        tensor('label', ['N'], INT64),
      ];
      const answers = [
        scores,
        output(
          'r',
          'INT32',
          null,
          [1, 2, 3, 4, 5, 6],
          [
            [1, 2],
            [2, 2],
          ],
        ),
        bigOutput('label', [], [1n, 2n]),
      ];
      const encoder = await createEncoder({
        format: 'parquet',
        compression: 'none',
        ids: false,
        keep: [],
        outputs: chosenSignature(signature, choice),
      });
      const result = resultOf(2, { outputs: chooseOutputs(answers, choice) });
      await expect(joined(encoder, [result])).resolves.toBeInstanceOf(Buffer);
    },
  );
});
