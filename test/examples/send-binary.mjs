// Three rows as raw little-endian floats, and the answer as raw floats: nothing is turned into text on the way.
const url = process.env.REMUDA_URL ?? 'http://localhost:8080';
const rows = Float32Array.of(-40, 0, 37);
const header = Buffer.from(
  JSON.stringify({
    inputs: [
      {
        name: 'celsius',
        datatype: 'FP32',
        shape: [rows.length, 1],
        parameters: { binary_data_size: rows.byteLength },
      },
    ],
  }),
);

const response = await fetch(`${url}/v1/models/celsius/requests`, {
  method: 'POST',
  headers: {
    'content-type': 'application/octet-stream',
    'inference-header-content-length': String(header.length),
    accept: 'application/octet-stream',
    prefer: 'wait=10',
  },
  body: Buffer.concat([header, new Uint8Array(rows.buffer)]),
});

const body = await response.arrayBuffer();
const headerLength = Number(response.headers.get('inference-header-content-length'));
const { status, outputs } = JSON.parse(Buffer.from(body, 0, headerLength).toString());
// The bytes behind the header need not begin at a multiple of four: slice() copies them.
console.log(response.status, status, outputs[0].name, new Float32Array(body.slice(headerLength)));
