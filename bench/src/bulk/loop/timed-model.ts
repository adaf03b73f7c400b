/** A session with one input and one output of the loop, whose runs are timed. */
import { type InferenceSession, Tensor } from 'onnxruntime-node';

export interface FloatRows {
  values: Float32Array;
  shape: readonly number[];
}

export class TimedModel {
  readonly #session: InferenceSession;
  /** In runs so far. */
  seconds = 0;

  constructor(session: InferenceSession) {
    this.#session = session;
  }

  /** One run of zeros that counts for nothing. */
  async warmUp(shape: readonly number[]): Promise<void> {
    await this.run({ values: new Float32Array(shape.reduce((product, dim) => product * dim, 1)), shape });
    this.seconds = 0;
  }

  async run({ values, shape }: FloatRows): Promise<FloatRows> {
    const begun = performance.now();
    const input = this.#session.inputNames[0] as string;
    const results = await this.#session.run({ [input]: new Tensor('float32', values, shape) });
    const output = results[this.#session.outputNames[0] as string] as Tensor;
    this.seconds += (performance.now() - begun) / 1000;
    return { values: output.data as Float32Array, shape: output.dims };
  }
}
