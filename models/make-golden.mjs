// Makes the golden cases of the bundled models anew: inputs taken from samples/ or made here, outputs as the real
// models give them, by the way that a request takes. The cases are committed, so nobody has to run this; it is here to
// say where they come from. Needs a build: `npx tsc -b && node models/make-golden.mjs`.

import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { prepareModels } from './prepare.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const samples = join(here, '..', 'samples');
const fromCore = createRequire(join(here, '..', 'packages', 'core', 'package.json'));
const load = (name) => import(pathToFileURL(fromCore.resolve(name)).href);
const { splitBytesElements } = await load('@remuda/schemas');
const core = (path) => import(pathToFileURL(join(here, '..', 'packages', 'core', 'dist', `${path}.js`)).href);
const { ModelLab } = await core('profile/model-lab');
const { scanRepository, toModelSource } = await core('repository/manifests');
const { validateInputs } = await core('requests/validate-inputs');

// Other processors add up in another order; what is wrong with a model shows far above this.
const TOLERANCE = { abs: 1e-3, rel: 1e-2 };
/** Far below the tolerance, and most of 6,625 class scores become a plain 0. */
const DECIMALS = 5;

await prepareModels();
const { models } = await scanRepository(here);
await makeCases('text-direction', imageCases(['01-remuda', '06-platform-9', '24-library']));
await makeCases('text-recognition', imageCases(['01-remuda', '11-room-305', '25-ticket-7-of-12']));
await makeCases('text-direction-tensor', directionCases());
await makeCases('text-recognition-tensor', recognitionCases());
await makeCases('speech-detector', await speechCases());

/** A case may be a function of the outputs of the one before it. */
async function makeCases(name, cases) {
  const model = models.find((candidate) => candidate.name === name);
  const source = toModelSource(model, '1', 'cpu');
  const folder = join(source.folder, 'golden');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
  const lab = await ModelLab.open(source);
  try {
    let before;
    for (const given of cases) {
      const made = typeof given === 'function' ? given(before) : given;
      before = await answerTo(lab, made);
      await writeCase(folder, made, before);
      console.log(`models/${name}/1/golden/${made.name}.json`);
    }
  } finally {
    lab.close();
  }
}

async function answerTo(lab, { inputs }) {
  const given = await Promise.all(
    Object.entries(inputs).map(async ([name, value]) =>
      value.file
        ? { name, path: [name], files: [await readFile(join(samples, 'text-lines', value.file))] }
        : { name, path: [name], value },
    ),
  );
  const [answer] = await lab.alone([
    { inputs: validateInputs(given, lab.loaded.signature, []), parameters: {} },
  ]);
  if (!answer.ok) throw new Error(answer.error.message);
  return Object.fromEntries(answer.outputs.map((output) => [output.name, asJson(output)]));
}

async function writeCase(folder, { name, description, inputs }, outputs) {
  for (const { file } of Object.values(inputs)) {
    if (file) await copyFile(join(samples, 'text-lines', file), join(folder, file));
  }
  const golden = { description, inputs, outputs, tolerance: TOLERANCE };
  await writeFile(join(folder, `${name}.json`), asLines(golden));
}

function asJson({ datatype, shape, bytes }) {
  if (datatype === 'BYTES')
    return { datatype, shape, data: splitBytesElements(bytes).map((text) => Buffer.from(text).toString()) };
  const values = new Float32Array(Uint8Array.from(bytes).buffer);
  return { datatype, shape, data: rounded(values) };
}

function rounded(values) {
  return Array.from(values, (value) => Number(value.toFixed(DECIMALS)) || 0);
}

/** JSON with each tensor on a line of its own: thousands of lines of one number each would hide the rest. */
function asLines({ description, inputs, outputs, tolerance }) {
  const block = (tensors) =>
    Object.entries(tensors)
      .map(([name, tensor]) => `    ${JSON.stringify(name)}: ${JSON.stringify(tensor)}`)
      .join(',\n');
  return `{
  "description": ${JSON.stringify(description)},
  "inputs": {\n${block(inputs)}\n  },
  "outputs": {\n${block(outputs)}\n  },
  "tolerance": ${JSON.stringify(tolerance)}
}\n`;
}

function imageCases(names) {
  return names.map((name) => ({
    name: name.slice(3),
    description: `samples/text-lines/${name}.png`,
    inputs: { image: { file: `${name}.png` } },
  }));
}

/** The file leaves height and width open, so that far smaller pictures than it was made for say if it computes right. */
function directionCases() {
  const picture = (name, description, at) => ({
    name,
    description: `${description}, 16 × 16`,
    inputs: { x: fp32([1, 3, 16, 16], at) },
  });
  return [
    picture('grey', 'mid grey', () => 0),
    picture('stripes', 'vertical stripes', (i) => (i % 4 < 2 ? 1 : -1)),
    picture('corner', 'one corner dark', (i) => (i % 16 < 8 && (i >> 4) % 16 < 8 ? -1 : 1)),
  ];
}

/** As narrow as it takes: one step of scores. */
function recognitionCases() {
  const line = (name, description, at) => ({
    name,
    description: `${description}, 8 columns wide`,
    inputs: { x: fp32([1, 3, 48, 8], at) },
  });
  return [
    line('blank', 'a white line', () => 1),
    line('letter-i', 'a dark "i" on white', (i) => (i % 8 > 2 && i % 8 < 5 && isInk((i >> 3) % 48) ? -1 : 1)),
  ];
}

/** Rows of the dot of an i, and of its stem. */
function isInk(y) {
  return (y > 6 && y < 12) || (y > 16 && y < 42);
}

/** The first window of silence, of a recording, and the one after it with the state that came out. */
async function speechCases() {
  const hello = samplesOf(await readFile(join(samples, 'speech', 'hello.wav')));
  const at = loudest(hello);
  const window = (name, description, input, state) => ({
    name,
    description,
    inputs: { input, state, sr: { datatype: 'INT64', shape: [], data: 16000 } },
  });
  const ofHello = (start) => fp32([1, 576], (i) => hello[start - 64 + i]);
  const nothing = fp32([2, 1, 128], () => 0);
  return [
    window(
      '1-silence',
      'a first window without any sound',
      fp32([1, 576], () => 0),
      nothing,
    ),
    window('2-speech', `samples/speech/hello.wav from sample ${at}, as a first window`, ofHello(at), nothing),
    ({ stateN }) => window('3-more-speech', 'the window after 2-speech', ofHello(at + 512), stateN),
  ];
}

function fp32(shape, at) {
  const count = shape.reduce((product, size) => product * size, 1);
  return { datatype: 'FP32', shape, data: rounded(Float32Array.from({ length: count }, (_, i) => at(i))) };
}

/** Where the loudest window begins, two windows before the end at the latest. */
function loudest(values) {
  let [best, energy] = [512, 0];
  for (let start = 512; start + 1024 <= values.length; start += 512) {
    const sum = values.subarray(start, start + 512).reduce((total, value) => total + value * value, 0);
    if (sum > energy) [best, energy] = [start, sum];
  }
  return best;
}

/** 16-bit PCM behind a plain 44-byte header → -1 to 1. */
function samplesOf(wav) {
  return Float32Array.from({ length: (wav.length - 44) >> 1 }, (_, i) => wav.readInt16LE(44 + 2 * i) / 32768);
}
