// A harness without ONNX: an object of one's own that loads whatever the version folder holds and runs batches.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

class WordCounter {
  modelId = '(not loaded)';
  #words;
  #runs = 0;

  get isLoaded() {
    return this.#words !== undefined;
  }

  async load({ modelId, folder, config }) {
    this.modelId = modelId;
    this.#words = (await readFile(join(folder, config.model_path), 'utf8')).trim().split('\n');
    return {
      inputs: [{ name: 'text', datatype: 'BYTES', shape: ['N'], batch_axis: 0, kind: 'tensor' }],
      outputs: [
        {
          name: 'counts',
          datatype: 'INT32',
          shape: ['N', this.#words.length],
          batch_axis: 0,
          kind: 'tensor',
        },
      ],
    };
  }

  async warmUp() {}

  /** One batch: `rows` rows of every input; the outputs hold as many. It may block: it has a thread of its own. */
  async run({ rows, inputs: [text] }) {
    const counts = Int32Array.from(
      texts(text.bytes).flatMap((row) => this.#words.map((word) => row.split(word).length - 1)),
    );
    this.#runs++;
    const shape = [rows, this.#words.length];
    return [{ name: 'counts', datatype: 'INT32', shape, bytes: new Uint8Array(counts.buffer) }];
  }

  async unload() {
    this.#words = undefined;
  }

  status() {
    return { state: this.isLoaded ? 'loaded' : 'unloaded', provider: 'js', runs: this.#runs };
  }
}

export const definition = { create: () => new WordCounter() };

/** Elements of a BYTES tensor: each has its length before it, as a uint32 little-endian. */
function texts(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const length = view.getUint32(at, true);
    found.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return found;
}
