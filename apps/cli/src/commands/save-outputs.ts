/**
 * Outputs as files that other programs read: numbers as .npy (NumPy format 1.0), BYTES as one .txt or .bin for each
 * element, and result.json with everything but the tensors.
 */

import { isUtf8 } from 'node:buffer';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type Datatype,
  decodeTensor,
  type InferenceResult,
  type RawTensor,
  splitBytesElements,
  type Tensor,
} from '@remuda/schemas';
import { CliError, reasonOf } from '../cli-error.js';
import { plural } from '../terminal/figures.js';
import type { Terminal } from '../terminal/terminal.js';
import { outcomesOf } from './outcomes.js';

type File = readonly [name: string, content: Uint8Array | string];

export async function saveOutputs(
  result: InferenceResult,
  folder: string,
  { cwd, terminal }: { cwd: string; terminal: Terminal },
): Promise<void> {
  const target = resolve(cwd, folder);
  const files = filesOf(result);
  try {
    await mkdir(target, { recursive: true });
    for (const [name, content] of files) await writeFile(join(target, name), content);
  } catch (error) {
    throw new CliError(`The outputs could not be saved: ${reasonOf(error)}`, undefined, { cause: error });
  }
  terminal.note(`saved ${plural(files.length, 'file')} in ${target}`);
}

export function filesOf(result: InferenceResult): File[] {
  const { outputs, items, ...facts } = result;
  const withoutTensors = { ...facts, items: items?.map(({ outputs: _, ...item }) => item) ?? null };
  const tensors = outcomesOf(result).flatMap(({ id, index, outputs: own }) => {
    const prefix = items ? `${index}-${fileName(id ?? 'item')}-` : '';
    return Object.entries(own ?? {}).flatMap(([name, tensor]) =>
      tensorFiles(prefix + fileName(name), tensor),
    );
  });
  return [['result.json', `${JSON.stringify(withoutTensors, null, 2)}\n`], ...tensors];
}

/** Ids and names are chosen by users: nothing of a path may be left in them. */
function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, '_').replace(/^\.+/, '_');
}

function tensorFiles(name: string, wire: Tensor): File[] {
  const tensor = decodeTensor(name, wire, [name]);
  if (tensor.datatype !== 'BYTES') return [[`${name}.npy`, npy(tensor)]];
  const elements = splitBytesElements(tensor.bytes);
  return elements.map((element, at) => {
    const stem = elements.length === 1 ? name : `${name}-${at}`;
    return [`${stem}.${isUtf8(element) ? 'txt' : 'bin'}`, element];
  });
}

const NPY_TYPES: Readonly<Record<Exclude<Datatype, 'BYTES'>, string>> = {
  BOOL: '|b1',
  UINT8: '|u1',
  UINT16: '<u2',
  UINT32: '<u4',
  UINT64: '<u8',
  INT8: '|i1',
  INT16: '<i2',
  INT32: '<i4',
  INT64: '<i8',
  FP16: '<f2',
  FP32: '<f4',
  FP64: '<f8',
};
/** Magic number, version 1.0, and the length of the header. */
const NPY_PRELUDE = 10;
/** The data begins at a multiple of this. */
const NPY_ALIGNMENT = 64;

function npy({ datatype, shape, bytes }: RawTensor): Buffer {
  const type = NPY_TYPES[datatype as keyof typeof NPY_TYPES];
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const dictionary = `{'descr': '${type}', 'fortran_order': False, 'shape': (${dims}), }`;
  const unpadded = NPY_PRELUDE + dictionary.length + 1;
  const padding = (NPY_ALIGNMENT - (unpadded % NPY_ALIGNMENT)) % NPY_ALIGNMENT;
  const header = `${dictionary}${' '.repeat(padding)}\n`;
  const prelude = Buffer.from([
    0x93,
    ...Buffer.from('NUMPY'),
    1,
    0,
    header.length & 0xff,
    header.length >> 8,
  ]);
  return Buffer.concat([prelude, Buffer.from(header, 'latin1'), bytes]);
}
