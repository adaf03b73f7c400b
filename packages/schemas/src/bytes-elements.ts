/**
 * Elements of a BYTES tensor in the binary layout: each has its length before it, as a uint32 little-endian. JSON can
 * hold them only where they are UTF-8.
 */
import { isUtf8 } from 'node:buffer';
import { refuse } from './violation.js';

/** Elements one behind the other, each with its length before it. */
export function joinBytesElements(elements: readonly Uint8Array[]): Uint8Array {
  const total = elements.reduce((sum, element) => sum + 4 + element.byteLength, 0);
  const out = Buffer.allocUnsafe(total);
  let offset = 0;
  for (const element of elements) {
    out.writeUInt32LE(element.byteLength, offset);
    out.set(element, offset + 4);
    offset += 4 + element.byteLength;
  }
  return out;
}

/** The elements of a BYTES tensor, as views. Trusts bytes that were checked. */
export function splitBytesElements(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out: Uint8Array[] = [];
  for (let offset = 0; offset < bytes.byteLength; ) {
    const length = view.getUint32(offset, true);
    out.push(bytes.subarray(offset + 4, offset + 4 + length));
    offset += 4 + length;
  }
  return out;
}

/** How many elements the bytes hold. @throws InvalidInputError where a length does not add up */
export function countBytesElements(bytes: Uint8Array, path: readonly PropertyKey[]): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let offset = 0;
  let count = 0;
  while (offset < bytes.byteLength) {
    const left = bytes.byteLength - offset - 4;
    const length = left >= 0 ? view.getUint32(offset, true) : -1;
    if (length < 0 || length > left) {
      refuse(
        [...path, count],
        'a uint32 length and that many bytes for each BYTES element',
        left < 0 ? `${left + 4} bytes left over` : `a length of ${length} with ${left} bytes left`,
      );
    }
    offset += 4 + length;
    count++;
  }
  return count;
}

/** The elements as strings, or undefined where one is not UTF-8 and would be damaged. */
export function textElements(bytes: Uint8Array): string[] | undefined {
  const elements = splitBytesElements(bytes);
  if (!elements.every((element) => isUtf8(element))) return undefined;
  return elements.map((element) =>
    Buffer.from(element.buffer, element.byteOffset, element.byteLength).toString('utf8'),
  );
}
