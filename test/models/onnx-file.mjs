// The bytes of ONNX files, for models that tests and benchmarks make up. Protobuf: a message is a flat list of [field
// number, value]; bigint and number are varints, strings and byte arrays are length-delimited, which is all that ONNX
// needs besides raw tensor bytes. The field numbers are those of onnx.proto.

export function message(...fields) {
  return Buffer.concat(fields.flatMap(([number, value]) => encodeField(number, value)));
}

function encodeField(number, value) {
  if (typeof value === 'number' || typeof value === 'bigint') return [varint(number << 3), varint(value)];
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  return [varint((number << 3) | 2), varint(bytes.length), bytes];
}

function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

export const ELEMENT = {
  FP32: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  BYTES: 8,
  BOOL: 9,
  FP16: 10,
  FP64: 11,
  UINT32: 12,
  UINT64: 13,
};

/** A graph input or output; a dim is a number or a name, and no dims at all is a scalar. */
export function value(name, datatype, dims) {
  const shape = dims.map((dim) => [1, message(typeof dim === 'number' ? [1, dim] : [2, dim])]);
  const tensorType = message([1, ELEMENT[datatype]], [2, message(...shape)]);
  return message([1, name], [2, message([1, tensorType])]);
}

/** A constant of the graph. */
export function constant(name, datatype, dims, data) {
  const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return message(...dims.map((dim) => [1, dim]), [2, ELEMENT[datatype]], [8, name], [9, raw]);
}

/** @param domain of the operator, where it is not ONNX's own */
export function node(operator, inputs, outputs, attributes = {}, domain = undefined) {
  return message(
    ...inputs.map((name) => [1, name]),
    ...outputs.map((name) => [2, name]),
    [3, `${operator}_${outputs[0]}`],
    [4, operator],
    ...Object.entries(attributes).map(([name, content]) => [5, attribute(name, content)]),
    ...(domain === undefined ? [] : [[7, domain]]),
  );
}

/** A graph is a Buffer, FLOATS a Float32Array, INTS an Int32Array, STRINGS an array; a number is INT, a string STRING. */
function attribute(name, content) {
  if (Buffer.isBuffer(content)) return message([1, name], [6, content], [20, 5]);
  if (content instanceof Float32Array)
    return message(
      [1, name],
      [7, Buffer.from(content.buffer, content.byteOffset, content.byteLength)],
      [20, 6],
    );
  if (content instanceof Int32Array)
    return message([1, name], [8, Buffer.concat(Array.from(content, (int) => varint(int)))], [20, 7]);
  if (Array.isArray(content)) return message([1, name], ...content.map((text) => [9, text]), [20, 8]);
  if (typeof content === 'string') return message([1, name], [4, content], [20, 3]);
  return message([1, name], [3, content], [20, 2]);
}

export function graph({ nodes, inputs, outputs, constants = [] }) {
  return message(
    ...nodes.map((bytes) => [1, bytes]),
    [2, 'g'],
    ...constants.map((bytes) => [5, bytes]),
    ...inputs.map((bytes) => [11, bytes]),
    ...outputs.map((bytes) => [12, bytes]),
  );
}

export function model(content, opset = 17, domains = {}) {
  const opsets = Object.entries({ '': opset, ...domains });
  return message(
    [1, 8],
    [2, 'remuda-test-models'],
    [7, graph(content)],
    ...opsets.map(([domain, version]) => [8, message([1, domain], [2, version])]),
  );
}
