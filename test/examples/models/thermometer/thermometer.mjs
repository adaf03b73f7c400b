// A harness of one's own around an ONNX model: text such as "21.5 °C" in, text out. What cannot be read fails alone.
export const definition = async ({ kind, z }) => ({
  ...(await kind('onnx')),
  kwargs: z.strictObject({ suffix: z.string().default('') }),
  parameters: z.strictObject({ decimals: z.int().min(0).max(6).default(1) }),

  // What users see, in place of the model's own tensors.
  publicTensors: () => ({ inputs: [text('reading')], outputs: [text('reading')] }),

  hooks: async ({ config }) => ({
    async preprocess([reading]) {
      const values = elements(reading.bytes).map((element) => Number.parseFloat(element));
      const wrong = values.findIndex(Number.isNaN);
      if (wrong >= 0) {
        const message = `reading[${wrong}] does not begin with a number`;
        return { error: { code: 'item_rejected', message, retryable: false } };
      }
      const bytes = new Uint8Array(Float32Array.from(values).buffer);
      return { inputs: [{ name: 'celsius', datatype: 'FP32', shape: [values.length, 1], bytes }] };
    },

    async postprocess([fahrenheit], { decimals }) {
      const { buffer, byteOffset, byteLength } = fahrenheit.bytes;
      const values = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
      const words = Array.from(values, (value) => value.toFixed(decimals) + config.model_kwargs.suffix);
      return {
        outputs: [{ name: 'reading', datatype: 'BYTES', shape: [words.length], bytes: joined(words) }],
      };
    },
  }),
});

const text = (name) => ({ name, datatype: 'BYTES', shape: ['N'], batch_axis: 0, kind: 'tensor' });

/** Elements of a BYTES tensor: each has its length before it, as a uint32 little-endian. */
function elements(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const length = view.getUint32(at, true);
    found.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return found;
}

function joined(words) {
  return Buffer.concat(
    words.flatMap((word) => {
      const bytes = Buffer.from(word);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}
