/** An output tensor in a few words: its values where they are few, else its datatype and shape. */
import { elementCount, type Tensor } from '@remuda/schemas';

const MOST_VALUES = 4;

export function outputText({ datatype, shape, data, b64 }: Tensor): string {
  const size = `${datatype} [${shape.join(', ')}]`;
  if (b64 !== undefined || elementCount(shape) > MOST_VALUES) return size;
  const values = (Array.isArray(data) ? data.flat(16) : [data]).map(valueText);
  if (values.length === 1) return values[0] as string;
  return `[${values.join(', ')}]`;
}

function valueText(value: unknown): string {
  if (typeof value === 'number' && !Number.isInteger(value)) return String(Number(value.toPrecision(4)));
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
