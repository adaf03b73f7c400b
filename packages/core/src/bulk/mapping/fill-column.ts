/** Values of one column into a tensor of numbers, whatever holds them: arrays of numbers, texts, JSON. */
import type { Datatype } from '@remuda/schemas';
import type { Column, NumericType, NumericValues } from '../columns.js';
import { fillNumbers, type NumberTarget } from './number-target.js';
import { textToNumber } from './text-numbers.js';

type NumberDatatype = Exclude<Datatype, 'BYTES'>;

/** Values [from, from + count), the i-th to element `at + i * stride`. */
interface Place {
  from: number;
  count: number;
  at: number;
  stride: number;
}

/** @param unfit told i for each value that does not fit */
export function fillColumn(
  target: NumberTarget,
  column: Column,
  place: Place,
  unfit: (i: number) => void,
): void {
  switch (column.type) {
    case 'string':
      fillTexts(target, column.values, place, unfit);
      return;
    case 'json':
      fillJson(target, column.values, place, unfit);
      return;
    case 'bytes':
    case 'list':
      for (let i = 0; i < place.count; i++) unfit(i);
      return;
    default:
      fillNumbers(target, column.type as NumericType, column.values as NumericValues, place, unfit);
  }
}

function fillTexts(
  target: NumberTarget,
  values: readonly (string | null)[],
  { from, count, at, stride }: Place,
  unfit: (i: number) => void,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    const value = textToNumber(values[from + i] ?? '', target.datatype);
    const fits =
      value !== null && (typeof value === 'bigint' ? target.putBig(o, value) : target.put(o, value));
    if (!fits) unfit(i);
  }
}

/** Numbers, truth values, and what the API takes for a number: "NaN", long integers as texts. */
function fillJson(
  target: NumberTarget,
  values: readonly unknown[],
  { from, count, at, stride }: Place,
  unfit: (i: number) => void,
): void {
  for (let i = 0, o = at; i < count; i++, o += stride) {
    const value = values[from + i];
    const fits =
      typeof value === 'number'
        ? isExact(value, target.datatype) && target.put(o, value)
        : putOther(target, o, value);
    if (!fits) unfit(i);
  }
}

function putOther(target: NumberTarget, at: number, value: unknown): boolean {
  if (typeof value === 'boolean') return target.datatype === 'BOOL' && target.put(at, Number(value));
  if (typeof value !== 'string') return false;
  const number = textToNumber(value, target.datatype);
  if (number === null) return false;
  return typeof number === 'bigint' ? target.putBig(at, number) : target.put(at, number);
}

/** A whole number beyond 2^53 has lost digits when its JSON was read. */
function isExact(value: number, datatype: NumberDatatype): boolean {
  return (
    (datatype !== 'INT64' && datatype !== 'UINT64') || Number.isSafeInteger(value) || !Number.isInteger(value)
  );
}
