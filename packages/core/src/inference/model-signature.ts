/** The signature of a loaded model version: what its users see. Made alike by runners and by inspect-model.ts. */
import { type ModelSignature, ModelSignature as Schema } from '@remuda/schemas';
import * as z from 'zod';
import { allowedClasses } from '../devices/affinity-rules.js';
import { ModelLoadError } from '../errors.js';
import type { HarnessDefinition, ModelSource, ModelTensors } from '../harness/harness.js';

/** @throws ModelLoadError when padding rules name what the model has not */
export function buildSignature(
  definition: HarnessDefinition,
  source: ModelSource,
  tensors: ModelTensors,
): ModelSignature {
  checkPadding(source, tensors);
  const seen = definition.publicTensors?.(tensors, source) ?? tensors;
  const batchable = seen.inputs.some((input) => input.batch_axis !== null);
  const { config } = source;
  return Schema.parse({
    model: source.model,
    version: source.version,
    digest: source.digest,
    harness: config.harness,
    inputs: seen.inputs,
    outputs: seen.outputs,
    batchable,
    max_batch_size: batchable ? config.max_batch_size : 1,
    padding: config.padding,
    parameters_schema: definition.parameters ? z.toJSONSchema(definition.parameters, { io: 'input' }) : null,
    streams: false,
    affinity: allowedClasses(config),
  });
}

function checkPadding(source: ModelSource, { inputs, outputs }: ModelTensors): void {
  for (const rule of source.config.padding) {
    const input = inputs.find((candidate) => candidate.name === rule.input);
    const wrong =
      axisFault('input', rule.input, rule.axis, input) ??
      rule.restore
        .map(({ output, axis }) =>
          axisFault(
            'output',
            output,
            axis,
            outputs.find((o) => o.name === output),
          ),
        )
        .find((fault) => fault !== undefined);
    if (wrong) throw new ModelLoadError(`${source.modelId}: padding: ${wrong}`);
  }
}

function axisFault(
  role: string,
  name: string,
  axis: number,
  tensor: ModelTensors['inputs'][number] | undefined,
): string | undefined {
  if (!tensor) return `the model has no ${role} "${name}"`;
  if (axis >= tensor.shape.length) return `${role} "${name}" has no axis ${axis}`;
  if (axis === tensor.batch_axis) return `axis ${axis} of ${role} "${name}" is its batch axis`;
  if (role === 'input' && typeof tensor.shape[axis] === 'number') {
    return `axis ${axis} of input "${name}" has the fixed size ${tensor.shape[axis]}`;
  }
  return undefined;
}
