import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  joinBytesElements,
  type RawTensor,
  type SignatureTensor,
} from '@remuda/schemas';
import { describe, expect, test } from 'vitest';
import { assemble, type BatchItem, type BatchModel, planRuns, rowsOf } from './batch-assembly.js';
import { joinPieces, restoreLengths, splitOutputs } from './batch-split.js';
import { BufferPool } from './buffer-pool.js';

/** A small generator with a seed, so that a failure can be run again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomTensor(
  name: string,
  datatype: Datatype,
  shape: number[],
  random: (below: number) => number,
): RawTensor {
  const count = elementCount(shape);
  const noise = (bytes: number): Uint8Array => Uint8Array.from({ length: bytes }, () => random(256));
  const bytes =
    datatype === 'BYTES'
      ? joinBytesElements(Array.from({ length: count }, () => noise(random(5))))
      : noise(count * ELEMENT_BYTES[datatype]);
  return { name, datatype, shape, bytes };
}

const signature = (name: string, datatype: Datatype, rank: number, axis: number | null): SignatureTensor => ({
  name,
  datatype,
  shape: Array.from({ length: rank }, (_, i) => `d${i}`),
  batch_axis: axis,
  kind: 'tensor',
});

/** Assembles, runs `run` in place of the model, splits and joins: what each item gets. */
function roundTrip(
  items: BatchItem[],
  model: BatchModel,
  run: (inputs: RawTensor[]) => RawTensor[] = (inputs) => inputs,
): { outputs: RawTensor[][]; runRows: number[]; held: number } {
  const pool = new BufferPool();
  const collected = items.map((): { from: number; outputs: RawTensor[] }[] => []);
  const runRows: number[] = [];
  for (const pieces of planRuns(
    items.map((item) => item.rows),
    model.maxBatchSize,
  )) {
    const batch = assemble(pieces, items, model, pool);
    runRows.push(batch.rows);
    const copied = run(batch.inputs).map((tensor) => ({ ...tensor, bytes: new Uint8Array(tensor.bytes) }));
    for (const buffer of batch.buffers) pool.release(buffer);
    splitOutputs(copied, pieces, model).forEach((outputs, i) => {
      const { item, from } = pieces[i] as (typeof pieces)[number];
      collected[item]?.push({ from, outputs });
    });
  }
  const outputs = collected.map((pieces, i) =>
    restoreLengths(
      joinPieces(
        pieces.map((piece) => piece.outputs),
        model,
      ),
      items[i]?.inputs ?? [],
      model,
    ),
  );
  return { outputs, runRows, held: pool.stats.heldBytes };
}

const plain = (tensor: RawTensor) => ({ ...tensor, shape: [...tensor.shape], bytes: [...tensor.bytes] });

describe('round trip', () => {
  test('random shapes, axes, datatypes and row counts come back as they went in', () => {
    const datatypes: Datatype[] = ['FP32', 'UINT8', 'INT64', 'FP16', 'BOOL', 'BYTES'];
    for (let seed = 1; seed <= 150; seed++) {
      const random = randomFrom(seed);
      const tensors = Array.from({ length: 1 + random(3) }, (_, i) => {
        const shape = Array.from({ length: 1 + random(4) }, () => 1 + random(4));
        return {
          name: `t${i}`,
          datatype: datatypes[random(6)] as Datatype,
          shape,
          axis: random(shape.length),
        };
      });
      const declared = tensors.map((t) => signature(t.name, t.datatype, t.shape.length, t.axis));
      const model: BatchModel = {
        inputs: declared,
        outputs: declared,
        padding: [],
        maxBatchSize: 1 + random(6),
      };
      const items = Array.from({ length: 1 + random(5) }, (): BatchItem => {
        const rows = 1 + random(9);
        const inputs = tensors.map((t) =>
          randomTensor(t.name, t.datatype, t.shape.with(t.axis, rows), random),
        );
        return { inputs, rows };
      });
      const { outputs, runRows, held } = roundTrip(items, model);
      expect(
        outputs.map((o) => o.map(plain)),
        `seed ${seed}`,
      ).toEqual(items.map((i) => i.inputs.map(plain)));
      expect(Math.max(...runRows)).toBeLessThanOrEqual(model.maxBatchSize);
      expect(held).toBe(0);
    }
  });

  test('misaligned views are taken', () => {
    const shifted = new Uint8Array(9);
    shifted[1] = 7;
    const x: RawTensor = { name: 'x', datatype: 'FP32', shape: [2, 1], bytes: shifted.subarray(1) };
    const declared = [signature('x', 'FP32', 2, 0)];
    const model: BatchModel = { inputs: declared, outputs: declared, padding: [], maxBatchSize: 4 };
    expect(roundTrip([{ inputs: [x], rows: 2 }], model).outputs[0]?.[0]?.bytes[0]).toBe(7);
  });
});

describe('planning', () => {
  test('items that fit are never cut, larger ones are spread', () => {
    expect(planRuns([3, 3, 3], 8)).toEqual([
      [
        { item: 0, from: 0, to: 3 },
        { item: 1, from: 0, to: 3 },
      ],
      [{ item: 2, from: 0, to: 3 }],
    ]);
    expect(planRuns([20], 8).map((run) => run.map(({ from, to }) => [from, to]))).toEqual([
      [[0, 8]],
      [[8, 16]],
      [[16, 20]],
    ]);
  });
});

const floats = (name: string, shape: number[], values: number[]): RawTensor => ({
  name,
  datatype: 'FP32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const numbers = (tensor: RawTensor | undefined): number[] =>
  tensor ? [...new Float32Array(new Uint8Array(tensor.bytes).buffer)] : [];

describe('padding', () => {
  const x = signature('x', 'FP32', 2, 0);
  const y = signature('y', 'FP32', 2, 0);
  const model: BatchModel = {
    inputs: [x],
    outputs: [y],
    maxBatchSize: 8,
    padding: [
      { input: 'x', axis: 1, multiple_of: 4, value: -1, restore: [{ output: 'y', axis: 1, ratio: 0.5 }] },
    ],
  };
  const items: BatchItem[] = [
    { inputs: [floats('x', [1, 3], [1, 2, 3])], rows: 1 },
    { inputs: [floats('x', [2, 4], [4, 5, 6, 7, 8, 9, 10, 11])], rows: 2 },
  ];

  test('rows are padded to the bucket with the value', () => {
    const batch = assemble(planRuns([1, 2], 8)[0] ?? [], items, model, new BufferPool());
    expect(batch.inputs[0]?.shape).toEqual([3, 4]);
    expect(numbers(batch.inputs[0])).toEqual([1, 2, 3, -1, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  test('outputs are cut back to the true length', () => {
    // The stand-in for a model keeps every second column.
    const { outputs } = roundTrip(items, model, ([input]) => {
      const values = numbers(input).filter((_, i) => i % 2 === 0);
      return [floats('y', [input?.shape[0] ?? 0, 2], values)];
    });
    expect(outputs.map(([o]) => [o?.shape, numbers(o)])).toEqual([
      [
        [1, 2],
        [1, 3],
      ],
      [
        [2, 2],
        [4, 6, 8, 10],
      ],
    ]);
    const short = [{ inputs: [floats('x', [1, 1], [9])], rows: 1 }];
    const cut = roundTrip(short, model, () => [floats('y', [1, 2], [9, -1])]).outputs[0]?.[0];
    expect([cut?.shape, numbers(cut)]).toEqual([[1, 1], [9]]);
  });
});

describe('what cannot share a batch', () => {
  const model: BatchModel = {
    inputs: [signature('x', 'FP32', 2, 0), signature('sr', 'FP32', 1, null)],
    outputs: [signature('x', 'FP32', 2, 0)],
    padding: [],
    maxBatchSize: 8,
  };
  const item = (width: number, sr: number): BatchItem => ({
    inputs: [floats('x', [1, width], new Array(width).fill(0)), floats('sr', [1], [sr])],
    rows: 1,
  });
  const together = (...items: BatchItem[]) =>
    assemble(
      planRuns(
        items.map(() => 1),
        8,
      )[0] ?? [],
      items,
      model,
      new BufferPool(),
    );

  test('other sizes and other values of a shared input are refused', () => {
    expect(() => together(item(2, 1), item(3, 1))).toThrow(
      /FP32 \[1, 2\] and FP32 \[1, 3\] cannot share a batch/,
    );
    expect(() => together(item(2, 1), item(2, 2))).toThrow(/"sr" has no batch axis and differs/);
    expect(numbers(together(item(2, 1), item(2, 1)).inputs[1])).toEqual([1]);
  });

  test('inputs of one item must agree on their rows', () => {
    const two: BatchModel = {
      ...model,
      inputs: [signature('a', 'FP32', 2, 0), signature('b', 'FP32', 2, 1)],
    };
    const inputs = [floats('a', [2, 1], [0, 0]), floats('b', [1, 3], [0, 0, 0])];
    expect(() => rowsOf(inputs, two)).toThrow('input "b" has 3 rows, others have 2');
  });
});
