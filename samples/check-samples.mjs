// Runs every sample through the real models with nothing between but what model.yaml says, and fails if one is not
// answered clearly. It is also the shortest full account of how an image or a window of sound reaches a model.
// `node samples/check-samples.mjs` (prepares the models first).

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareModels } from '../models/prepare.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const models = join(here, '..', 'models');
const fromCore = createRequire(join(here, '..', 'packages', 'core', 'package.json'));
const ort = fromCore('onnxruntime-node');
const sharp = fromCore('sharp');
const yaml = fromCore('yaml');

await prepareModels();
const expected = JSON.parse(await readFile(join(here, 'expected.json'), 'utf8'));
let wrong = 0;
await checkTextLines();
await checkSpeech();
console.log(wrong === 0 ? 'every sample is answered clearly' : `${wrong} samples are not answered clearly`);
process.exitCode = wrong === 0 ? 0 : 1;

async function checkTextLines() {
  const direction = await open('text-direction');
  const recogniser = await open('text-recognition');
  const keys = await readFile(join(models, 'text-recognition/1', recogniser.kwargs.dictionary), 'utf8');
  const characters = [
    ...keys.replace(/\n$/, '').split('\n'),
    ...(recogniser.kwargs.append_space ? [' '] : []),
  ];

  for (const line of expected.text_lines) {
    const image = await readFile(join(here, line.file));
    const scores = (await run(direction, await fixedSize(image, direction.kwargs))).data;
    const best = scores[0] > scores[1] ? 0 : 1;
    const label = direction.kwargs.labels[best];
    let read = '';
    if (line.direction === '0') {
      read = decode(
        await run(recogniser, await dynamicWidth(image, recogniser.kwargs)),
        characters,
        recogniser.kwargs,
      );
    }
    const good =
      label === line.direction && scores[best] > 0.9 && (line.direction === '180' || read === line.text);
    report(good, line.file, `${label} ${scores[best].toFixed(4)}`, JSON.stringify(read || line.text));
  }
}

async function checkSpeech() {
  const detector = await open('speech-detector');
  for (const { file, speech } of expected.speech) {
    const top = Math.max(...(await probabilities(detector, samplesOf(await readFile(join(here, file))))));
    report(speech ? top > 0.8 : top < 0.3, file, top.toFixed(4), speech ? 'speech' : 'no speech');
  }
}

async function open(name) {
  const config = yaml.parse(await readFile(join(models, name, 'model.yaml'), 'utf8'));
  const options = { intraOpNumThreads: config.intra_op_threads, logSeverityLevel: 3 };
  const session = await ort.InferenceSession.create(join(models, name, '1/model.onnx'), options);
  return { session, kwargs: config.model_kwargs };
}

async function run({ session }, tensor) {
  const outputs = await session.run({ [session.inputNames[0]]: tensor });
  return outputs[session.outputNames[0]];
}

async function fixedSize(image, kwargs) {
  return toTensor(await decoded(image, kwargs, kwargs.width), kwargs.width, kwargs);
}

async function dynamicWidth(image, kwargs) {
  const pixels = await decoded(image, kwargs, kwargs.max_width);
  const width = Math.ceil(pixels.width / kwargs.width_multiple) * kwargs.width_multiple;
  return toTensor(pixels, width, kwargs);
}

/** Decodes to RGB bytes of the wanted height, the ratio kept, at most maxWidth wide (wider lines are squeezed). */
async function decoded(image, { height, background, interpolation }, maxWidth) {
  const source = await sharp(image).metadata();
  const width = Math.min(maxWidth, Math.ceil((height * source.width) / source.height));
  const data = await sharp(image)
    .flatten({ background })
    .toColourspace('srgb')
    .resize(width, height, { fit: 'fill', kernel: interpolation })
    .raw()
    .toBuffer();
  return { data, width, height };
}

/** Bytes, height x width x RGB → one row [1, 3, height, width], normalised, padded on the right. */
function toTensor(pixels, width, { channels, scale, mean, std, pad_value }) {
  const { data, height } = pixels;
  const values = new Float32Array(3 * height * width).fill(pad_value);
  for (let plane = 0; plane < 3; plane++) {
    const offset = 'rgb'.indexOf(channels[plane]);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < pixels.width; x++) {
        const byte = data[(y * pixels.width + x) * 3 + offset];
        values[(plane * height + y) * width + x] = (byte * scale - mean[plane]) / std[plane];
      }
    }
  }
  return new ort.Tensor('float32', values, [1, 3, height, width]);
}

/** CTC, greedy: the best class of each step, repeats merged, blanks dropped. */
function decode({ data, dims: [, steps, classes] }, characters, { blank_index }) {
  let text = '';
  let previous = blank_index;
  for (let step = 0; step < steps; step++) {
    const scores = data.subarray(step * classes, (step + 1) * classes);
    const best = scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));
    if (best !== previous && best !== blank_index) text += characters[best - 1];
    previous = best;
  }
  return text;
}

/** Windows of 512 new samples behind the last 64 of the window before; state goes from run to run. */
async function probabilities({ session }, samples) {
  const found = [];
  const window = new Float32Array(64 + 512);
  let state = new ort.Tensor('float32', new Float32Array(2 * 1 * 128), [2, 1, 128]);
  const sr = new ort.Tensor('int64', BigInt64Array.of(16000n), []);
  for (let start = 0; start + 512 <= samples.length; start += 512) {
    window.copyWithin(0, 512);
    window.set(samples.subarray(start, start + 512), 64);
    const result = await session.run({ input: new ort.Tensor('float32', window, [1, 576]), state, sr });
    found.push(result.output.data[0]);
    state = result.stateN;
  }
  return found;
}

/** 16-bit PCM behind a plain 44-byte header → -1 to 1. */
function samplesOf(wav) {
  return Float32Array.from({ length: (wav.length - 44) >> 1 }, (_, i) => wav.readInt16LE(44 + 2 * i) / 32768);
}

function report(good, ...columns) {
  if (!good) wrong++;
  console.log(good ? 'ok   ' : 'WRONG', ...columns);
}
