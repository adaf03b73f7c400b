/**
 * Speech clips: a request for each window of 32 ms, with the detector's state carried from one to the next. All clips at
 * once: their windows share batches. samples/README.md says how a window is made.
 */
import { encodeBinaryBody, type InferenceResult, type RawTensor } from '@remuda/schemas';
import type { ApiClient, RequestBody } from '../api/api-client.js';
import { reasonOf } from '../cli-error.js';
import { askModel, firstFloat, outputOf } from './ask-model.js';
import { type SampleAnswer, sampleAnswer } from './sample-answer.js';
import type { SpeechClip } from './sample-set.js';

const MODEL = 'speech-detector';
const SAMPLE_RATE = 16_000;
const NEW_SAMPLES = 512;
/** The end of the window before stands in front of the new samples. */
const OVERLAP = 64;
const STATE_SHAPE = [2, 1, 128];
const STATE_BYTES = 2 * 128 * 4;
const WAV_HEADER_BYTES = 44;
/** A clip holds speech when one of its windows is this likely to. */
const THRESHOLD = 0.5;

export function askSpeech(api: ApiClient, clips: readonly SpeechClip[]): Promise<SampleAnswer[]> {
  return Promise.all(clips.map((clip) => askClip(api, clip)));
}

async function askClip(api: ApiClient, { name, wav, speech }: SpeechClip): Promise<SampleAnswer> {
  const about = { sample: name, model: MODEL, expected: wordFor(speech) };
  const results: InferenceResult[] = [];
  let top = 0;
  let state: Uint8Array = new Uint8Array(STATE_BYTES);
  try {
    for (const window of windowsOf(wav)) {
      const result = await askModel(api, MODEL, windowBody(window, state));
      results.push(result);
      top = Math.max(top, firstFloat(outputOf(result, 'output')));
      state = outputOf(result, 'stateN').bytes;
    }
    return sampleAnswer({ ...about, answer: wordFor(top > THRESHOLD), score: top, results });
  } catch (error) {
    return sampleAnswer({ ...about, answer: reasonOf(error), score: null, results });
  }
}

function wordFor(speech: boolean): string {
  return speech ? 'speech' : 'no speech';
}

/** 16-bit PCM behind a plain header → windows of floats from -1 to 1; a last part that fills none is left out. */
export function* windowsOf(wav: Buffer): Generator<Float32Array> {
  const count = Math.floor((wav.byteLength - WAV_HEADER_BYTES) / 2);
  const window = new Float32Array(OVERLAP + NEW_SAMPLES);
  for (let start = 0; start + NEW_SAMPLES <= count; start += NEW_SAMPLES) {
    window.copyWithin(0, NEW_SAMPLES);
    for (let at = 0; at < NEW_SAMPLES; at++) {
      window[OVERLAP + at] = wav.readInt16LE(WAV_HEADER_BYTES + 2 * (start + at)) / 32_768;
    }
    yield window.slice();
  }
}

/** In the binary layout of the Open Inference Protocol: floats need no text. */
function windowBody(window: Float32Array, state: Uint8Array): RequestBody {
  const tensors: RawTensor[] = [
    { name: 'input', datatype: 'FP32', shape: [1, window.length], bytes: new Uint8Array(window.buffer) },
    { name: 'state', datatype: 'FP32', shape: STATE_SHAPE, bytes: state },
    {
      name: 'sr',
      datatype: 'INT64',
      shape: [],
      bytes: new Uint8Array(BigInt64Array.of(BigInt(SAMPLE_RATE)).buffer),
    },
  ];
  const { body, headerLength } = encodeBinaryBody('inputs', tensors);
  return {
    body: new Uint8Array(body),
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(headerLength),
    },
  };
}
