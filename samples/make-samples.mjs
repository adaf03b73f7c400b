// Makes the samples and expected.json anew. The results are committed: nobody has to run this, and another version of
// the fonts or of espeak-ng gives other bytes. Needs, on Debian or Ubuntu:
//   apt-get install fontconfig fonts-dejavu-core fonts-liberation espeak-ng
// Then: node samples/make-samples.mjs && node samples/check-samples.mjs

import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const sharp = createRequire(join(here, '..', 'packages', 'core', 'package.json'))('sharp');
const RATE = 16000;

// [text, font, weight and slant, height of the image in px, ink, paper]
const LINES = [
  ['Remuda', 'DejaVu Sans', '', 48, '#111', '#fff'],
  ['queue of horses', 'Liberation Serif', '', 56, '#222', '#fdf6e3'],
  ['Invoice 20417', 'Liberation Sans', '', 48, '#000', '#fff'],
  ['Total 1,284.50', 'Liberation Mono', '', 52, '#003', '#eef'],
  ['departure gate', 'DejaVu Serif', '', 64, '#fff', '#224'],
  ['Platform 9', 'Liberation Sans', 'bold', 72, '#fff', '#060'],
  ['batch of thirty two rows', 'DejaVu Sans', '', 48, '#333', '#fff'],
  ['4711 0815 2342', 'DejaVu Sans Mono', '', 50, '#111', '#fff'],
  ['Weather report', 'Liberation Serif', 'bold', 60, '#400', '#fff0f0'],
  ['northern harbour', 'Liberation Sans', 'italic', 54, '#111', '#f4f4f4'],
  ['Room 305', 'DejaVu Sans', 'bold', 80, '#fd0', '#111'],
  ['the quick brown fox', 'DejaVu Serif', '', 48, '#111', '#fff'],
  ['Serial 88 31 07', 'Liberation Mono', 'bold', 48, '#222', '#fff'],
  ['fresh bread daily', 'Liberation Serif', 'italic', 66, '#520', '#ffe'],
  ['Emergency exit', 'Liberation Sans', 'bold', 64, '#fff', '#a00'],
  ['latency 12 ms', 'DejaVu Sans', '', 48, '#0a0', '#000'],
  ['paper and pencil', 'DejaVu Sans', '', 58, '#225', '#fff'],
  ['Chapter seven', 'DejaVu Serif', 'bold', 70, '#111', '#eee'],
  ['water level 260 cm', 'Liberation Sans', '', 48, '#036', '#eff'],
  ['Mountain railway', 'Liberation Serif', '', 62, '#000', '#fff'],
  ['Order 99 shipped', 'DejaVu Sans Mono', '', 48, '#444', '#fff'],
  ['handle with care', 'Liberation Sans', 'bold', 56, '#a30', '#fff'],
  ['Speed limit 50', 'DejaVu Sans', 'bold', 76, '#111', '#fc0'],
  ['library', 'Liberation Serif', '', 48, '#111', '#fff'],
  ['Ticket 7 of 12', 'DejaVu Sans', '', 54, '#606', '#fff'],
  ['morning coffee', 'DejaVu Serif', '', 60, '#210', '#fed'],
  ['Version 3 released', 'Liberation Sans', '', 50, '#111', '#fff'],
  ['second hand books', 'Liberation Mono', '', 48, '#111', '#f8f8f0'],
];

// [file, espeak-ng voice, words per minute, text]
const SPOKEN = [
  ['hello', 'en-us', 165, 'Hello, the horses are ready.'],
  ['numbers', 'en-gb+f3', 170, 'Seven, eight, nine and ten.'],
  ['german', 'de+m3', 165, 'Guten Morgen, wie geht es Ihnen?'],
  ['question', 'en-gb+m7', 160, 'Where is the station?'],
];

// [file, seconds, sample number → -1 to 1]
const NOT_SPOKEN = [
  ['silence', 1, () => 0],
  ['white-noise', 1.2, whiteNoise()],
  ['tone-440hz', 1.2, (i) => 0.3 * Math.sin((2 * Math.PI * 440 * i) / RATE)],
  [
    'hum-50hz',
    1,
    (i) => 0.2 * Math.sin((2 * Math.PI * 50 * i) / RATE) + 0.05 * Math.sin((2 * Math.PI * 150 * i) / RATE),
  ],
];

await Promise.all(['text-lines', 'speech'].map(empty));
const expected = {
  text_lines: await makeTextLines(),
  speech: [...(await makeSpoken()), ...(await makeNotSpoken())],
};
await writeFile(join(here, 'expected.json'), asLines(expected));

async function empty(folder) {
  await rm(join(here, folder), { recursive: true, force: true });
  await mkdir(join(here, folder), { recursive: true });
}

/** Every second line is turned; so each text is seen in one direction only. */
async function makeTextLines() {
  return Promise.all(
    LINES.map(async ([text, font, style, height, ink, paper], i) => {
      const direction = i % 2 === 0 ? '0' : '180';
      const name = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
      const file = `text-lines/${String(i + 1).padStart(2, '0')}-${name}.png`;
      const upright = await sharp(await textLine({ text, font, style, height, ink, paper })).toBuffer();
      await sharp(upright)
        .rotate(Number(direction))
        .png({ palette: true, colours: 32 })
        .toFile(join(here, file));
      return { file, direction, text };
    }),
  );
}

/** Draws wide, measures the ink, and draws again just as wide as the text needs. */
async function textLine({ text, font, style, height, ink, paper }) {
  const size = Math.round(height * 0.62);
  const margin = Math.round(height * 0.1);
  const weight = style === 'bold' ? 'bold' : 'normal';
  const slant = style === 'italic' ? 'italic' : 'normal';
  const draw = (width) =>
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
      <rect width="100%" height="100%" fill="${paper}"/>
      <text x="${margin}" y="${Math.round(height * 0.69)}" xml:space="preserve" font-family="${font}"
        font-size="${size}" font-weight="${weight}" font-style="${slant}" fill="${ink}">${text}</text></svg>`);
  const { info } = await sharp(draw(text.length * height))
    .trim()
    .toBuffer({ resolveWithObject: true });
  return draw(info.width + 2 * margin);
}

async function makeSpoken() {
  const made = [];
  for (const [name, voice, speed, text] of SPOKEN) {
    const raw = join(tmpdir(), `remuda-${process.pid}-${name}.wav`);
    execFileSync('espeak-ng', ['-v', voice, '-s', String(speed), '-w', raw, text]);

    const wav = await readFile(raw);
    await rm(raw);
    const samples = Float32Array.from(
      { length: (wav.length - 44) >> 1 },
      (_, i) => wav.readInt16LE(44 + 2 * i) / 32768,
    );
    made.push(await writeWav(name, true, resample(samples, wav.readUInt32LE(24)).subarray(0, 2 * RATE)));
  }
  return made;
}

async function makeNotSpoken() {
  return Promise.all(
    NOT_SPOKEN.map(([name, seconds, at]) =>
      writeWav(
        name,
        false,
        Float32Array.from({ length: Math.round(seconds * RATE) }, (_, i) => at(i)),
      ),
    ),
  );
}

/** Windowed sinc, low-passed at 16 kHz's own limit. */
function resample(samples, from) {
  const step = from / RATE;
  const cutoff = Math.min(1, RATE / from);
  const reach = 16 / cutoff;
  return Float32Array.from({ length: Math.floor(samples.length / step) }, (_, i) => {
    const centre = i * step;
    let sum = 0;
    for (let k = Math.max(0, Math.ceil(centre - reach)); k < Math.min(samples.length, centre + reach); k++) {
      const distance = k - centre;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * distance) / reach);
      sum += samples[k] * sinc(distance * cutoff) * cutoff * window;
    }
    return sum;
  });
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function whiteNoise() {
  let seed = 1;
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return 0.2 * (seed / 2 ** 31 - 1);
  };
}

/** 16 kHz, mono, 16 bit, a plain 44-byte header. */
async function writeWav(name, speech, samples) {
  const file = `speech/${name}.wav`;
  const wav = Buffer.alloc(44 + 2 * samples.length);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36 + 2 * samples.length, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE, 24);
  wav.writeUInt32LE(2 * RATE, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((sample, i) => {
    wav.writeInt16LE(Math.max(-32768, Math.min(32767, Math.round(sample * 32767))), 44 + 2 * i);
  });
  await writeFile(join(here, file), wav);
  return { file, speech };
}

/** JSON with one sample a line, as a person would write it. */
function asLines(lists) {
  const spaced = (entry) =>
    `{ ${Object.entries(entry)
      .map(([k, v]) => `${JSON.stringify(k)}: ${JSON.stringify(v)}`)
      .join(', ')} }`;
  const parts = Object.entries(lists).map(
    ([name, entries]) => `  "${name}": [\n${entries.map((entry) => `    ${spaced(entry)}`).join(',\n')}\n  ]`,
  );
  return `{\n${parts.join(',\n')}\n}\n`;
}
