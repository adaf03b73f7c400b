/**
 * Rows of a column as Parquet's levels: how much of the way to an element is there (definition), and at which list it
 * goes on (repetition). Loops over typed arrays: no object is made for a row.
 */
import { isValid, type ListVector, type Vector } from './vectors.js';

export interface Levels {
  /** null: every row has a value, and cannot be without one. */
  definition: Uint8Array | null;
  /** null: no lists. */
  repetition: Uint8Array | null;
  definitionMax: number;
  repetitionMax: number;
  /** Levels without an element. */
  missing: number;
  /** Elements of the innermost vector that belong to the rows, those without a value too. */
  leaf: Vector;
  from: number;
  to: number;
}

/** Of rows [from, to). */
export function levelsOf(vector: Vector, from: number, to: number, required: boolean): Levels {
  const { leaf, depth, first, end } = innermost(vector, from, to);
  const base = { leaf, from: first, to: end, repetitionMax: depth };
  if (required && depth === 0)
    return { ...base, definition: null, repetition: null, definitionMax: 0, missing: 0 };
  const writer = new LevelWriter(vector, from, to, depth);
  writer.walk(vector, 0, from, to, 0);
  return { ...base, ...writer.levels() };
}

function innermost(
  vector: Vector,
  from: number,
  to: number,
): { leaf: Vector; depth: number; first: number; end: number } {
  if (vector.kind !== 'list') return { leaf: vector, depth: 0, first: from, end: to };
  const inside = innermost(vector.child, vector.offsets[from] as number, vector.offsets[to] as number);
  return { ...inside, depth: inside.depth + 1 };
}

/** Levels that there can be at most: one for each element, and for each list, which may be empty. */
function mostLevels(vector: Vector, from: number, to: number): number {
  if (vector.kind !== 'list') return to - from;
  const first = vector.offsets[from] as number;
  return to - from + mostLevels(vector.child, first, vector.offsets[to] as number);
}

class LevelWriter {
  readonly #depth: number;
  readonly #definition: Uint8Array;
  readonly #repetition: Uint8Array | null;
  #used = 0;
  #missing = 0;

  constructor(vector: Vector, from: number, to: number, depth: number) {
    const most = mostLevels(vector, from, to);
    this.#depth = depth;
    this.#definition = new Uint8Array(most);
    this.#repetition = depth > 0 ? new Uint8Array(most) : null;
  }

  levels(): Pick<Levels, 'definition' | 'repetition' | 'definitionMax' | 'missing'> {
    return {
      definition: this.#definition.subarray(0, this.#used),
      repetition: this.#repetition?.subarray(0, this.#used) ?? null,
      definitionMax: 2 * this.#depth + 1,
      missing: this.#missing,
    };
  }

  /** @param repetition level of the first entry; the others go on at this depth */
  walk(vector: Vector, depth: number, from: number, to: number, repetition: number): void {
    if (vector.kind === 'list') this.#lists(vector, depth, from, to, repetition);
    else this.#elements(vector, depth, from, to, repetition);
  }

  #lists(vector: ListVector, depth: number, from: number, to: number, repetition: number): void {
    const { offsets, child } = vector;
    for (let i = from; i < to; i++) {
      const level = i === from ? repetition : depth;
      const first = offsets[i] as number;
      const end = offsets[i + 1] as number;
      if (!isValid(vector, i)) this.#absent(2 * depth, level);
      else if (first === end) this.#absent(2 * depth + 1, level);
      else this.walk(child, depth + 1, first, end, level);
    }
  }

  #absent(definition: number, repetition: number): void {
    this.#definition[this.#used] = definition;
    if (this.#repetition) this.#repetition[this.#used] = repetition;
    this.#used++;
    this.#missing++;
  }

  #elements(leaf: Vector, depth: number, from: number, to: number, repetition: number): void {
    const { valid } = leaf;
    const begin = this.#used;
    const present = 2 * depth + 1;
    const end = begin + to - from;
    // Short lists are most: a loop beats two calls of fill for them.
    for (let at = begin; at < end; at++) this.#definition[at] = present;
    if (this.#repetition) {
      for (let at = begin; at < end; at++) this.#repetition[at] = depth;
      this.#repetition[begin] = repetition;
    }
    if (valid)
      for (let i = from; i < to; i++)
        if (valid[i] === 0) {
          this.#definition[begin + i - from] = present - 1;
          this.#missing++;
        }
    this.#used = end;
  }
}
