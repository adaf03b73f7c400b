/**
 * What of the outputs is wanted: some of them by name, and of numbers the largest elements or the place of the largest,
 * along the last axis of a row. The runner chooses from what has run, the encoder of the file from the signature; both
 * decide by name, datatype and rank alone, so that they agree.
 */
import {
  type Datatype,
  ELEMENT_BYTES,
  elementCount,
  fromHalfBits,
  type ModelSignature,
  type SignatureTensor,
} from '@remuda/schemas';
import { InferenceError, RemudaError } from '../../errors.js';
import { asElements, type NumericArray } from '../../harness/onnx-types.js';
import { nearNames } from '../../repository/near-names.js';
import type { OutputChoice, OutputColumn } from '../chunk.js';
import type { OutputField } from './bulk-output.js';
import { kLargest, largest } from './largest-elements.js';

/** Names of the columns that stand in place of an output. */
export const CHOSEN = {
  topValues: (output: string) => `${output}_top_values`,
  topIndices: (output: string) => `${output}_top_indices`,
  argmax: (output: string) => `${output}_argmax`,
} as const;

/** Of what a chunk has run, on the runner. Names that are not there are left out: chosenSignature() has refused them. */
export function chooseOutputs(outputs: OutputColumn[], choice: OutputChoice): OutputColumn[] {
  const { topK, argmax } = choice;
  const wanted = choice.outputs
    ? [...new Set(choice.outputs)].flatMap((name) => outputs.find((output) => output.name === name) ?? [])
    : outputs;
  if (topK === undefined && !argmax) return wanted;
  return wanted.flatMap((output) =>
    isRanked(output.datatype, rankOf(output)) ? rankedColumns(output, choice) : [output],
  );
}

/**
 * What the same choice makes of the model's outputs, before any row has run: for createEncoder().
 * @throws RemudaError invalid_request: a name that no output has
 */
export function chosenSignature(
  outputs: ModelSignature['outputs'],
  { outputs: names, topK, argmax }: OutputChoice,
): OutputField[] {
  const fields = outputs.map(fieldOf);
  const wanted = names ? [...new Set(names)].map((name) => named(fields, name)) : fields;
  return wanted.flatMap((field) => {
    if ((topK === undefined && !argmax) || !isRanked(field.datatype, field.rowShape.length)) return [field];
    return rankedFields(field, topK, argmax ?? false);
  });
}

function fieldOf({ name, datatype, shape, batch_axis }: SignatureTensor): OutputField {
  const rowShape = shape
    .filter((_, axis) => axis !== batch_axis)
    .map((dim) => (typeof dim === 'number' ? dim : null));
  return { name, datatype, rowShape };
}

function named(fields: readonly OutputField[], name: string): OutputField {
  const field = fields.find((one) => one.name === name);
  if (field) return field;
  const names = fields.map((one) => one.name);
  const near = nearNames(name, names);
  const hint = near.length > 0 ? `; did you mean ${near.map(quoted).join(' or ')}?` : '';
  throw new RemudaError(
    'invalid_request',
    `output.outputs: the model has no output ${quoted(name)}, it has ${names.map(quoted).join(', ')}${hint}`,
    { path: 'output.outputs', name, near, outputs: names },
  );
}

function quoted(name: string): string {
  return `"${name}"`;
}

/** Numbers that are more than one scalar a row: among a single number there is nothing to choose. */
function isRanked(datatype: Datatype, rank: number): boolean {
  return datatype !== 'BYTES' && rank >= 1;
}

function rankOf({ shape, shapes }: OutputColumn): number {
  return (shape ?? shapes?.find((one) => one !== null) ?? []).length;
}

function rankedFields(
  { name, datatype, rowShape }: OutputField,
  topK: number | undefined,
  argmax: boolean,
): OutputField[] {
  const outer = rowShape.slice(0, -1);
  const width = rowShape.at(-1) as number | null;
  const fields: OutputField[] = [];
  if (topK !== undefined) {
    const shape = [...outer, width === null ? null : Math.min(topK, width)];
    fields.push({ name: CHOSEN.topValues(name), datatype, rowShape: shape });
    fields.push({ name: CHOSEN.topIndices(name), datatype: 'INT64', rowShape: shape });
  }
  if (argmax) fields.push({ name: CHOSEN.argmax(name), datatype: 'INT64', rowShape: outer });
  return fields;
}

function rankedColumns(output: OutputColumn, { topK, argmax }: OutputChoice): OutputColumn[] {
  const vectors = new VectorsOf(output);
  return [...(topK === undefined ? [] : vectors.top(topK)), ...(argmax ? [vectors.argmax()] : [])];
}

/** The vectors along the last axis of all rows, one behind the other. */
class VectorsOf {
  readonly #output: OutputColumn;
  readonly #elements: NumericArray;
  /** To compare by: half floats as numbers. */
  readonly #order: ArrayLike<number | bigint>;
  /** Ends of the vectors. */
  readonly #ends: number[] | null;
  readonly #width: number;
  readonly #count: number;

  constructor(output: OutputColumn) {
    const { datatype, bytes, shape, shapes } = output;
    this.#output = output;
    this.#elements = asElements(datatype as Exclude<Datatype, 'BYTES'>, bytes);
    this.#order = datatype === 'FP16' ? widened(this.#elements as Uint16Array) : this.#elements;
    this.#width = shape?.at(-1) ?? 0;
    this.#ends = shape ? null : vectorEnds(shapes ?? []);
    // Vectors without elements cannot be counted; there are no elements to choose either.
    this.#count = this.#ends?.length ?? (this.#width > 0 ? this.#elements.length / this.#width : 0);
  }

  argmax(): OutputColumn {
    const { name, shape } = this.#output;
    if (shape && this.#width === 0)
      throw new InferenceError(
        'output_mismatch',
        `output "${name}" has no elements along its last axis: none is the largest`,
      );
    const best = new Int32Array(this.#count * 2);
    this.#each((vector, from, to) => {
      const at = largest(this.#order, from, to);
      best[2 * vector] = at;
      // Two's complement of 64 bits: -1 where no element is a number.
      best[2 * vector + 1] = at < 0 ? -1 : 0;
    });
    const bytes = new Uint8Array(best.buffer);
    return this.#column(CHOSEN.argmax(name), 'INT64', bytes, (dims) => dims.slice(0, -1));
  }

  top(k: number): OutputColumn[] {
    const { name, datatype } = this.#output;
    let total = 0;
    this.#each((_, from, to) => {
      total += Math.min(k, to - from);
    });
    const values = new Uint8Array(total * ELEMENT_BYTES[datatype]);
    const chosen = asElements(datatype as Exclude<Datatype, 'BYTES'>, values) as unknown as Settable;
    const indices = new Int32Array(total * 2);
    const places = new Int32Array(k);
    let at = 0;
    this.#each((_, from, to) => {
      const count = kLargest(this.#order, from, to, places);
      for (let i = 0; i < count; i++, at++) {
        chosen[at] = this.#elements[places[i] as number] as number | bigint;
        indices[2 * at] = (places[i] as number) - from;
      }
    });
    const shapeOf = (shape: readonly number[]): number[] => [
      ...shape.slice(0, -1),
      Math.min(k, shape.at(-1) as number),
    ];
    return [
      this.#column(CHOSEN.topValues(name), datatype, values, shapeOf),
      this.#column(CHOSEN.topIndices(name), 'INT64', new Uint8Array(indices.buffer), shapeOf),
    ];
  }

  #each(visit: (vector: number, from: number, to: number) => void): void {
    let from = 0;
    for (let vector = 0; vector < this.#count; vector++) {
      const to = this.#ends ? (this.#ends[vector] as number) : from + this.#width;
      visit(vector, from, to);
      from = to;
    }
  }

  #column(
    name: string,
    datatype: Datatype,
    bytes: Uint8Array,
    shapeOf: (shape: readonly number[]) => number[],
  ): OutputColumn {
    const { shape, shapes } = this.#output;
    if (shape) return { name, datatype, shape: shapeOf(shape), bytes };
    return {
      name,
      datatype,
      shape: null,
      shapes: (shapes ?? []).map((one) => one && shapeOf(one)),
      bytes,
    };
  }
}

interface Settable {
  [index: number]: number | bigint;
}

function widened(halves: Uint16Array): Float32Array {
  return Float32Array.from(halves, fromHalfBits);
}

function vectorEnds(shapes: readonly (readonly number[] | null)[]): number[] {
  const ends: number[] = [];
  let end = 0;
  for (const shape of shapes) {
    if (!shape) continue;
    const vectors = elementCount(shape.slice(0, -1));
    for (let i = 0; i < vectors; i++) {
      end += shape.at(-1) as number;
      ends.push(end);
    }
  }
  return ends;
}
