// Writes the model of tables: `tabular`, gradient-boosted trees as LightGBM's converters write them, x (fp32 [N, 30]) →
// probabilities (fp32 [N, 2]) by a TreeEnsembleClassifier of ai.onnx.ml: full trees of depth 6, of random splits and
// leaves out of one seed. `await makeTabularModel(dir)`, or `node test/models/tabular-model.mjs DIR`.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { model, node, value } from './onnx-file.mjs';

export const TABULAR_FEATURES = 30;
const DEPTH = 6;
/** Leaves add up to log odds of an ordinary size. */
const MOST_LEAF = 0.2;

/**
 * Lays <dir>/<name>; features are expected to lie in [-1, 1).
 * @param options.maxBatchSize rows of a run; options.more: lines of model.yaml besides; options.harness: text of a harness
 *   of its own, in place of the onnx kind
 */
export async function makeTabularModel(dir, options = {}) {
  const { name = 'tabular', trees = 100, maxBatchSize = 1024, more = '', harness } = options;
  const folder = join(dir, name);
  await mkdir(join(folder, '1'), { recursive: true });
  const kind = harness === undefined ? 'onnx' : './harness.mjs';
  if (harness !== undefined) await writeFile(join(folder, 'harness.mjs'), harness);
  await writeFile(
    join(folder, 'model.yaml'),
    `description: Gradient-boosted trees over ${TABULAR_FEATURES} columns.\nharness: ${kind}\nmax_batch_size: ${maxBatchSize}\n${more}`,
  );
  await writeFile(join(folder, '1/model.onnx'), tabularModel(trees));
}

function tabularModel(trees) {
  return model(
    {
      nodes: [
        node('TreeEnsembleClassifier', ['x'], ['label', 'probabilities'], ensemble(trees), 'ai.onnx.ml'),
      ],
      inputs: [value('x', 'FP32', ['N', TABULAR_FEATURES])],
      outputs: [value('probabilities', 'FP32', ['N', 2])],
    },
    17,
    { 'ai.onnx.ml': 3 },
  );
}

/** Node i of a full tree has its children at 2i + 1 and 2i + 2. */
function ensemble(trees) {
  const inner = 2 ** DEPTH - 1;
  const size = 2 ** (DEPTH + 1) - 1;
  const leaves = size - inner;
  const random = lcg(20);
  const places = Array.from({ length: trees * size }, (_, i) => ({
    tree: Math.floor(i / size),
    id: i % size,
    branch: i % size < inner,
  }));
  const ints = (of) => Int32Array.from(places, of);
  const ends = places.filter(({ branch }) => !branch);
  return {
    nodes_treeids: ints(({ tree }) => tree),
    nodes_nodeids: ints(({ id }) => id),
    nodes_featureids: ints(({ branch }) => (branch ? Math.floor(random() * TABULAR_FEATURES) : 0)),
    nodes_values: Float32Array.from(places, ({ branch }) => (branch ? random() * 1.6 - 0.8 : 0)),
    nodes_modes: places.map(({ branch }) => (branch ? 'BRANCH_LEQ' : 'LEAF')),
    nodes_truenodeids: ints(({ id, branch }) => (branch ? 2 * id + 1 : 0)),
    nodes_falsenodeids: ints(({ id, branch }) => (branch ? 2 * id + 2 : 0)),
    class_treeids: Int32Array.from(ends, ({ tree }) => tree),
    class_nodeids: Int32Array.from(ends, ({ id }) => id),
    class_ids: new Int32Array(trees * leaves),
    class_weights: Float32Array.from(ends, () => (random() * 2 - 1) * MOST_LEAF),
    classlabels_int64s: Int32Array.of(0, 1),
    post_transform: 'LOGISTIC',
  };
}

/** Numbers in [0, 1), the same on every machine. */
function lcg(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await makeTabularModel(process.argv[2] ?? '.');
}
