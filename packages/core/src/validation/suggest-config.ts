/** A first model.yaml for a file that has none, from what was found out about it. */
import type { ModelSignature } from '@remuda/schemas';
import type { BatchVerdict } from './batch-check.js';

export function suggestConfig(signature: ModelSignature, verdict: BatchVerdict): string {
  return ['harness: onnx', batchLine(verdict), ...openAxes(signature), ''].join('\n');
}

function batchLine(verdict: BatchVerdict): string {
  switch (verdict.kind) {
    case 'same':
      return 'max_batch_size: 8 # a batch answers as single rows do; `remuda models profile` finds the best size';
    case 'no_batch_axis':
      return 'max_batch_size: 1 # no input has a batch axis; name it with batch_axis, if there is one';
    case 'differs':
      return 'max_batch_size: 1 # in a batch its rows change each other';
    case 'not_deterministic':
    case 'unknown':
      return 'max_batch_size: 1 # whether its rows may share a run could not be found out: add golden cases';
  }
}

/** What a person must say: the sizes of axes that the file leaves open. */
function openAxes({ inputs }: ModelSignature): string[] {
  const open = inputs.flatMap(({ shape, batch_axis }) =>
    shape.filter((dim, axis): dim is string => typeof dim === 'string' && axis !== batch_axis),
  );
  const names = [...new Set(open)].filter((name) => name !== '');
  if (names.length === 0) return [];
  const dims = names.map((name) => `${JSON.stringify(name)}: 32`).join(', ');
  return [`warmup: [{ rows: 1, dims: { ${dims} } }] # write the sizes that requests usually have`];
}
