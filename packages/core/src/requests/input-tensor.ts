/**
 * One input of a request, as it came, to the tensor that the model takes: datatype, rank, fixed sizes, rows, strings.
 * What concerns several inputs together stands in validate-inputs.ts.
 *
 * A bare value takes its datatype from the signature and its shape from its nesting. Where exactly the batch axis is
 * missing it is one row: [1, 2, 3] for an input [N, 3], a number for an input [N]. A Tensor says its shape and is
 * taken at its word. Bytes of binary bodies are never copied.
 */
import { isUtf8 } from 'node:buffer';
import {
  type Datatype,
  decodeTensor,
  describeValue,
  dotted,
  type FrameTensorBytes,
  type InputValue,
  InvalidInputError,
  joinBytesElements,
  LIMITS,
  MAX_RANK,
  nestedShape,
  type RawTensor,
  refuse,
  type SignatureTensor,
  splitBytesElements,
  type Tensor,
} from '@remuda/schemas';

type Path = readonly PropertyKey[];

/**
 * One named input as it came: a JSON value, a tensor of a binary body, or whole image files (the edge turns base64 and
 * data URLs into files).
 */
export type GivenInput = { name: string; path: Path } & (
  | { value: InputValue }
  | { tensor: FrameTensorBytes }
  | { files: readonly Uint8Array[] }
);

/** One input as a tensor that fits what the signature says of it. @throws InvalidInputError */
export function inputTensor(given: GivenInput, input: SignatureTensor): RawTensor {
  if ('files' in given) return imageTensor(given, input, given.files);
  if ('tensor' in given) return fromFrame(given, given.tensor, input);
  return isTensor(given.value)
    ? fromTensor(given, given.value, input)
    : fromBareValue(given, given.value, input);
}

/** Whether a JSON value is a Tensor, with a datatype and a shape of its own. */
export function isTensor(value: InputValue): value is Tensor {
  return typeof value === 'object' && !Array.isArray(value);
}

/** The bytes were checked against datatype and shape where they were cut out of the body. */
function fromFrame(given: GivenInput, tensor: FrameTensorBytes, input: SignatureTensor): RawTensor {
  const { datatype, shape, bytes, data } = tensor;
  if (bytes === undefined) return fromTensor(given, { datatype, shape, data }, input);
  checkDeclared(given.path, datatype, shape, input);
  return checkedStrings({ name: input.name, datatype, shape, bytes }, input, given.path);
}

function fromTensor(given: GivenInput, tensor: Tensor, input: SignatureTensor): RawTensor {
  checkDeclared(given.path, tensor.datatype, tensor.shape, input);
  if (input.kind === 'image' && tensor.data !== undefined) {
    refuse([...given.path, 'data'], 'bytes of image files, in base64', describeValue(tensor.data));
  }
  return checkedStrings(decodeTensor(input.name, tensor, given.path), input, given.path);
}

function fromBareValue(
  given: GivenInput,
  value: Exclude<InputValue, Tensor>,
  input: SignatureTensor,
): RawTensor {
  if (input.kind === 'image') refuse(given.path, 'an image file', describeValue(value));
  const { name, datatype, batch_axis: axis } = input;
  const nested = nestedShape(value);
  if (axis !== null && nested[0] === 0) refuse(given.path, 'at least 1 row', '0 rows');
  const shape = [...nested];
  if (axis !== null && shape.length === input.shape.length - 1) shape.splice(axis, 0, 1);
  checkShape(given.path, shape, input, value);
  const tensor = withoutDataKey(given.path, () =>
    decodeTensor(name, { datatype, shape: nested, data: value }, given.path),
  );
  return checkedStrings({ ...tensor, shape }, input, given.path);
}

/** The codec says `x.data[3]`; in a bare value that place is `x[3]`. */
function withoutDataKey<T>(path: Path, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const own = dotted(path);
    throw new InvalidInputError(
      error.violations.map((finding) => ({
        ...finding,
        path: own + finding.path.slice(`${own}.data`.length),
      })),
    );
  }
}

function imageTensor(given: GivenInput, input: SignatureTensor, files: readonly Uint8Array[]): RawTensor {
  if (input.kind !== 'image') refuse(given.path, wanted(input), 'an image file');
  const shape = [files.length];
  checkShape(given.path, shape, input, files);
  refuseEmptyImages(files, given.path);
  return { name: input.name, datatype: 'BYTES', shape, bytes: joinBytesElements(files) };
}

function checkDeclared(
  path: Path,
  datatype: Datatype,
  shape: readonly number[],
  input: SignatureTensor,
): void {
  if (datatype !== input.datatype) refuse([...path, 'datatype'], wanted(input), datatype);
  checkShape([...path, 'shape'], shape, input);
}

/** Rank, fixed sizes and the number of rows. `bare`: the value whose nesting gave the shape. */
function checkShape(path: Path, shape: readonly number[], input: SignatureTensor, bare?: unknown): void {
  const { shape: expected, batch_axis: batchAxis } = input;
  // Only a declared shape can be pointed into.
  const place = (axis: number): Path => (bare === undefined ? [...path, axis] : path);
  if (shape.length !== expected.length) refuseRank(path, shape, input, bare);
  for (let axis = 0; axis < expected.length; axis++) {
    const size = shape[axis] as number;
    const fixed = expected[axis];
    if (typeof fixed === 'number' && size !== fixed) {
      refuse(place(axis), `${fixed} (axis ${axis} of ${shapeText(input)})`, `${size}`);
    }
    if (axis !== batchAxis) continue;
    if (size < 1) refuse(place(axis), 'at least 1 row', `${size} rows`);
    if (size > LIMITS.rows) refuse(place(axis), `at most ${LIMITS.rows} rows`, `${size} rows`);
  }
}

function refuseRank(path: Path, shape: readonly number[], input: SignatureTensor, bare: unknown): never {
  const rank = input.shape.length;
  if (bare === undefined) {
    refuse(path, `${rank} axes ${shapeText(input)}`, `${shape.length} axes ${sizesText(shape)}`);
  }
  const orRow = input.batch_axis === null ? '' : `, or ${rank - 1} for a single row`;
  const received =
    shape.length === 0 ? describeValue(bare) : `${shape.length} levels, shape ${sizesText(shape)}`;
  refuse(path, `arrays nested ${rank} deep as ${shapeText(input)}${orRow}`, received);
}

/** An answer must not grow with what somebody sends. */
function sizesText(shape: readonly number[]): string {
  const shown = shape.slice(0, MAX_RANK).join(', ');
  return shape.length > MAX_RANK ? `[${shown}, …]` : `[${shown}]`;
}

/** What is no image at all fails later, alone; an empty file is a mistake of the sender. */
function refuseEmptyImages(files: readonly Uint8Array[], path: Path): void {
  files.forEach((file, index) => {
    if (file.byteLength === 0) {
      refuse(files.length > 1 ? [...path, index] : path, 'an image file', '0 bytes');
    }
  });
}

/** ONNX Runtime cuts strings at NUL and reads them as UTF-8: what would not arrive unchanged is refused. */
function checkedStrings(tensor: RawTensor, input: SignatureTensor, path: Path): RawTensor {
  if (tensor.datatype !== 'BYTES') return tensor;
  if (input.kind === 'image') refuseEmptyImages(splitBytesElements(tensor.bytes), path);
  else {
    for (const [index, element] of splitBytesElements(tensor.bytes).entries()) {
      if (element.includes(0)) refuse([...path, index], 'text without NUL characters', 'a NUL');
      if (!isUtf8(element)) refuse([...path, index], 'UTF-8 text', 'bytes that are not UTF-8');
    }
  }
  return tensor;
}

/** FP32 [N, 3, 48, 192] */
export function wanted(input: SignatureTensor): string {
  return input.kind === 'image' ? 'an image file' : `${input.datatype} ${shapeText(input)}`;
}

function shapeText({ shape }: SignatureTensor): string {
  return `[${shape.map((dim) => (dim === '' ? '?' : dim)).join(', ')}]`;
}
