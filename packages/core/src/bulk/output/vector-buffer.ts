/** A column that grows: rows of several parts gathered into one row group. Its memory is used again for the next. */
import type { NumericValues } from '../columns.js';
import { NUMERIC_ARRAY } from '../numeric-types.js';
import type { FieldType } from './field-types.js';
import type { BytesVector, ListVector, NumberVector, Vector } from './vectors.js';

export abstract class VectorBuffer {
  length = 0;
  #valid: Uint8Array | null = null;

  static of(type: FieldType): VectorBuffer {
    if (type.kind === 'none') throw new Error('a column of a file has a type');
    if (type.kind === 'number') return new NumberBuffer(type);
    return type.kind === 'list' ? new ListBuffer(type.of) : new BytesBuffer(type.kind);
  }

  /** Entries [from, to) of a vector of this type. */
  append(vector: Vector, from: number, to: number): void {
    this.#mark(vector.valid, from, to);
    this.appendEntries(vector, from, to);
    this.length += to - from;
  }

  /** What is in it, as views that hold until the next append. */
  vector(): Vector {
    return this.view({ length: this.length, valid: this.#valid?.subarray(0, this.length) ?? null });
  }

  clear(): void {
    this.length = 0;
    this.#valid = null;
    this.clearEntries();
  }

  #mark(valid: Uint8Array | null, from: number, to: number): void {
    const end = this.length + to - from;
    if (!valid && !this.#valid) return;
    if (!this.#valid || this.#valid.length < end) {
      const wider = new Uint8Array(Math.max(1_024, end * 2));
      if (this.#valid) wider.set(this.#valid.subarray(0, this.length));
      else wider.fill(1, 0, this.length);
      this.#valid = wider;
    }
    if (valid) this.#valid.set(valid.subarray(from, to), this.length);
    else this.#valid.fill(1, this.length, end);
  }

  protected abstract appendEntries(vector: Vector, from: number, to: number): void;
  protected abstract view(base: { length: number; valid: Uint8Array | null }): Vector;
  protected abstract clearEntries(): void;
}

/** The array itself, or a longer one with its first `used` elements. */
function roomFor<T extends NumericValues>(array: T, used: number, needed: number): T {
  if (array.length >= needed) return array;
  const longer = new (array.constructor as new (length: number) => T)(Math.max(1_024, needed * 2));
  longer.set(array.subarray(0, used) as never);
  return longer;
}

class NumberBuffer extends VectorBuffer {
  readonly #type: NumberVector['type'];
  #values: NumericValues;

  constructor({ type }: Extract<FieldType, { kind: 'number' }>) {
    super();
    this.#type = type;
    this.#values = new NUMERIC_ARRAY[type](0);
  }

  protected override appendEntries(vector: Vector, from: number, to: number): void {
    this.#values = roomFor(this.#values, this.length, this.length + to - from);
    this.#values.set((vector as NumberVector).values.subarray(from, to) as never, this.length);
  }

  protected override view(base: { length: number; valid: Uint8Array | null }): Vector {
    return { kind: 'number', type: this.#type, ...base, values: this.#values.subarray(0, this.length) };
  }

  protected override clearEntries(): void {}
}

/** Ends of entries one behind the other, whatever part they come from. */
class Ends {
  #offsets = new Uint32Array(1);

  /** Appends those of entries [from, to) behind `used` others; returns where they begin in the source. */
  append(offsets: Uint32Array, from: number, to: number, used: number): [first: number, end: number] {
    this.#offsets = roomFor(this.#offsets, used + 1, used + 1 + to - from);
    const first = offsets[from] as number;
    const shift = (this.#offsets[used] as number) - first;
    for (let i = from; i < to; i++) this.#offsets[used + 1 + i - from] = (offsets[i + 1] as number) + shift;
    return [first, offsets[to] as number];
  }

  upTo(length: number): Uint32Array {
    return this.#offsets.subarray(0, length + 1);
  }
}

class BytesBuffer extends VectorBuffer {
  readonly #kind: BytesVector['kind'];
  readonly #ends = new Ends();
  #data = new Uint8Array(0);
  #used = 0;

  constructor(kind: BytesVector['kind']) {
    super();
    this.#kind = kind;
  }

  protected override appendEntries(vector: Vector, from: number, to: number): void {
    const { offsets, data } = vector as BytesVector;
    const [first, end] = this.#ends.append(offsets, from, to, this.length);
    this.#data = roomFor(this.#data, this.#used, this.#used + end - first);
    this.#data.set(data.subarray(first, end), this.#used);
    this.#used += end - first;
  }

  protected override view(base: { length: number; valid: Uint8Array | null }): Vector {
    const data = this.#data.subarray(0, this.#used);
    return { kind: this.#kind, ...base, offsets: this.#ends.upTo(this.length), data };
  }

  protected override clearEntries(): void {
    this.#used = 0;
  }
}

class ListBuffer extends VectorBuffer {
  readonly #ends = new Ends();
  readonly #child: VectorBuffer;

  constructor(of: FieldType) {
    super();
    this.#child = VectorBuffer.of(of);
  }

  protected override appendEntries(vector: Vector, from: number, to: number): void {
    const { offsets, child } = vector as ListVector;
    this.#child.append(child, ...this.#ends.append(offsets, from, to, this.length));
  }

  protected override view(base: { length: number; valid: Uint8Array | null }): Vector {
    return { kind: 'list', ...base, offsets: this.#ends.upTo(this.length), child: this.#child.vector() };
  }

  protected override clearEntries(): void {
    this.#child.clear();
  }
}
