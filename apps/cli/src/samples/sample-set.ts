/** The bundled samples with their known answers: samples/expected.json. */
import { readFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import * as z from 'zod';

const Expected = z.strictObject({
  text_lines: z.array(
    z.strictObject({ file: z.string(), direction: z.enum(['0', '180']), text: z.string() }),
  ),
  speech: z.array(z.strictObject({ file: z.string(), speech: z.boolean() })),
});

export interface TextLine {
  name: string;
  image: Buffer;
  direction: string;
  text: string;
}

export interface SpeechClip {
  name: string;
  wav: Buffer;
  speech: boolean;
}

export interface SampleSet {
  textLines: TextLine[];
  speech: SpeechClip[];
}

export async function readSampleSet(folder: string): Promise<SampleSet> {
  const expected = Expected.parse(JSON.parse(await readFile(join(folder, 'expected.json'), 'utf8')));
  const bytesOf = (file: string) => readFile(join(folder, file));
  const [textLines, speech] = await Promise.all([
    Promise.all(
      expected.text_lines.map(async ({ file, ...known }) => ({
        name: nameOf(file),
        image: await bytesOf(file),
        ...known,
      })),
    ),
    Promise.all(
      expected.speech.map(async ({ file, ...known }) => ({
        name: nameOf(file),
        wav: await bytesOf(file),
        ...known,
      })),
    ),
  ]);
  return { textLines, speech };
}

function nameOf(file: string): string {
  return basename(file, extname(file));
}
