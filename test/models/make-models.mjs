// Writes the tiny ONNX models that tests and benchmarks run: each shows one thing a real model may do (a datatype, a
// slow run, a kernel failure, an odd batch axis, a broken file). Deterministic, no dependencies, no build.
// `node test/models/make-models.mjs DIR`, or `await makeTestModels(dir)`: DIR/<name>/{model.yaml,1/model.onnx}.

import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { constant, ELEMENT, graph, model, node, value } from './onnx-file.mjs';

// --- the models

function identity(datatype, dims) {
  return model({
    nodes: [node('Identity', ['x'], ['y'])],
    inputs: [value('x', datatype, dims)],
    outputs: [value('y', datatype, dims)],
  });
}

function add() {
  return model({
    nodes: [node('Add', ['a', 'b'], ['sum'])],
    inputs: [value('a', 'FP32', ['N', 4]), value('b', 'FP32', ['N', 4])],
    outputs: [value('sum', 'FP32', ['N', 4])],
  });
}

function scale() {
  return model({
    nodes: [node('Mul', ['x', 'factor'], ['y'])],
    inputs: [value('x', 'FP32', ['N', 4]), value('factor', 'FP32', [])],
    outputs: [value('y', 'FP32', ['N', 4])],
  });
}

/** Multiplies a 64x64 matrix `iterations` times beside carrying x through the loop, so that y is x to the bit. */
function slow() {
  const size = 64;
  const unit = Float32Array.from({ length: size * size }, (_, i) => (i % (size + 1) === 0 ? 1 : 0));
  const body = graph({
    nodes: [
      node('Identity', ['go'], ['go_on']),
      node('MatMul', ['product', 'unit'], ['next_product']),
      node('Identity', ['carried'], ['next_carried']),
    ],
    inputs: [
      value('i', 'INT64', []),
      value('go', 'BOOL', []),
      value('product', 'FP32', [size, size]),
      value('carried', 'FP32', ['N', 4]),
    ],
    outputs: [
      value('go_on', 'BOOL', []),
      value('next_product', 'FP32', [size, size]),
      value('next_carried', 'FP32', ['N', 4]),
    ],
  });
  return model({
    nodes: [node('Loop', ['iterations', '', 'unit', 'x'], ['product_out', 'y'], { body })],
    constants: [constant('unit', 'FP32', [size, size], unit)],
    inputs: [value('x', 'FP32', ['N', 4]), value('iterations', 'INT64', [])],
    outputs: [value('y', 'FP32', ['N', 4])],
  });
}

/** Gathers row i from place i, or from a place far outside the tensor when x[i,0] is 666: the kernel then fails. */
function failOnMark() {
  return model({
    nodes: [
      node('Gather', ['x', 'zero'], ['first'], { axis: 1 }),
      node('Equal', ['first', 'mark'], ['marked']),
      node('Cast', ['marked'], ['marked_int'], { to: ELEMENT.INT64 }),
      node('Mul', ['marked_int', 'far'], ['shift']),
      node('Shape', ['x'], ['shape']),
      node('Gather', ['shape', 'zero'], ['rows']),
      node('Range', ['zero', 'rows', 'one'], ['places']),
      node('Add', ['places', 'shift'], ['from']),
      node('Gather', ['x', 'from'], ['y'], { axis: 0 }),
    ],
    constants: [
      constant('zero', 'INT64', [], BigInt64Array.of(0n)),
      constant('one', 'INT64', [], BigInt64Array.of(1n)),
      constant('far', 'INT64', [], BigInt64Array.of(1_000_000_000n)),
      constant('mark', 'FP32', [], Float32Array.of(666)),
    ],
    inputs: [value('x', 'FP32', ['N', 4])],
    outputs: [value('y', 'FP32', ['N', 4])],
  });
}

/**
 * Promises y as [N,4] and gives [1,4], the mean over all rows of the batch. The axis comes out of NonZero, behind which
 * no shape inference sees: with a plain constant the runtime would find out and report y as [1,4].
 */
function meanOverBatch() {
  return model(
    {
      nodes: [
        node('NonZero', ['one'], ['place']),
        node('Reshape', ['place', 'flat'], ['axes']),
        node('ReduceMean', ['x', 'axes'], ['y'], { keepdims: 1 }),
      ],
      constants: [
        constant('one', 'INT64', [1], BigInt64Array.of(1n)),
        constant('flat', 'INT64', [1], BigInt64Array.of(-1n)),
      ],
      inputs: [value('x', 'FP32', ['N', 4])],
      outputs: [value('y', 'FP32', ['N', 4])],
    },
    18,
  );
}

/** Takes the mean over the batch from each row, as batch normalisation in training mode does: shapes and axes are right. */
function centreOverBatch() {
  return model(
    {
      nodes: [
        node('ReduceMean', ['x', 'axes'], ['mean'], { keepdims: 1 }),
        node('Sub', ['x', 'mean'], ['y']),
      ],
      constants: [constant('axes', 'INT64', [1], BigInt64Array.of(0n))],
      inputs: [value('x', 'FP32', ['N', 4])],
      outputs: [value('y', 'FP32', ['N', 4])],
    },
    18,
  );
}

function variableLength() {
  return model({
    nodes: [node('Mul', ['x', 'two'], ['y'])],
    constants: [constant('two', 'FP32', [], Float32Array.of(2))],
    inputs: [value('x', 'FP32', ['N', 'L'])],
    outputs: [value('y', 'FP32', ['N', 'L'])],
  });
}

function futureOpset() {
  return model(
    {
      nodes: [node('Identity', ['x'], ['y'])],
      inputs: [value('x', 'FP32', ['N', 'D'])],
      outputs: [value('y', 'FP32', ['N', 'D'])],
    },
    99,
  );
}

/** Bytes that look like nothing; a fixed seed, so that the digest of the version never changes. */
function noise(length) {
  let seed = 0x2545f491;
  return Buffer.from(
    Array.from({ length }, () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed >>> 24;
    }),
  );
}

const PADDING = `padding:
  - { input: x, axis: 1, multiple_of: 8, value: 0, restore: [{ output: y, axis: 1, ratio: 1 }] }
`;

/** name → { about, file (absent: no model.onnx is written), and lines of model.yaml besides harness and description } */
const MODELS = {
  ...Object.fromEntries(
    Object.keys(ELEMENT).map((datatype) => [
      `identity-${datatype.toLowerCase()}`,
      { about: `Gives back its ${datatype} input.`, file: identity(datatype, ['N', 'D']), rows: 32 },
    ]),
  ),
  'identity-4': {
    about: 'Gives back its rows of 4: takes and gives what fail-on-mark does.',
    file: identity('FP32', ['N', 4]),
    rows: 32,
  },
  'identity-16': {
    about: 'Gives back 16 floats a row; for benchmarks.',
    file: identity('FP32', ['N', 16]),
    rows: 64,
  },
  add: { about: 'Adds two inputs.', file: add(), rows: 32 },
  scale: { about: 'Multiplies x by a scalar that has no batch axis.', file: scale(), rows: 32 },
  slow: {
    about: 'Gives back x after `iterations` rounds of work; a huge number hangs.',
    file: slow(),
    rows: 8,
    more: 'timeout_ms: 600000\n',
  },
  'slow-limited': {
    about: 'As slow; what hangs in it is found out soon.',
    file: slow(),
    rows: 8,
    more: 'timeout_ms: 3000\n',
  },
  'fail-on-mark': { about: 'Fails at run time when any row starts with 666.', file: failOnMark(), rows: 32 },
  'centre-over-batch': {
    about: 'Mixes its rows: each answer depends on the others.',
    file: centreOverBatch(),
    rows: 8,
  },
  'mean-over-batch': { about: 'Mixes its rows: the output has one.', file: meanOverBatch(), rows: 8 },
  'fixed-batch': { about: 'Takes exactly one row, [1,4].', file: identity('FP32', [1, 4]), rows: 8 },
  'batch-axis-1': { about: 'Has its rows along axis 1.', file: identity('FP32', [2, 'N', 3]), rows: 8 },
  'variable-length': { about: 'Doubles rows of any length.', file: variableLength(), rows: 8, more: PADDING },
  corrupt: { about: 'A file of noise; never loads.', file: noise(2048), rows: 8 },
  'future-opset': {
    about: 'Asks for an opset that no runtime has; never loads.',
    file: futureOpset(),
    rows: 8,
  },
  'missing-file': { about: 'A version folder without a file; never loads.', rows: 8 },
};

/** Lays a model repository of all test models in `directory`; returns their names. */
export async function makeTestModels(directory) {
  await Promise.all(Object.entries(MODELS).map(([name, entry]) => writeModel(join(directory, name), entry)));
  return Object.keys(MODELS);
}

async function writeModel(folder, { about, file, rows, more = '' }) {
  await mkdir(join(folder, '1'), { recursive: true });
  const yaml = `description: ${JSON.stringify(about)}\nharness: onnx\nmax_batch_size: ${rows}\nintra_op_threads: 1\n${more}`;
  await writeAtomically(join(folder, 'model.yaml'), yaml);
  if (file) await writeAtomically(join(folder, '1', 'model.onnx'), file);
}

// Test files run side by side and may lay the same repository: nobody may load half a model.
async function writeAtomically(path, content) {
  const temporary = join(
    dirname(dirname(path)),
    `.${process.pid}-${Math.random().toString(36).slice(2)}.tmp`,
  );
  await writeFile(temporary, content);
  await rename(temporary, path);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const directory = process.argv[2];
  if (!directory) {
    console.error('usage: node test/models/make-models.mjs DIR');
    process.exit(2);
  }
  const names = await makeTestModels(directory);
  console.log(`${names.length} models in ${directory}`);
}
