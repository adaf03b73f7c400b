/** The images of a folder, in the order of their names. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { usageError } from '../cli-error.js';
import { isImageName } from './format-of-name.js';

export interface ImagesBelow {
  paths: string[];
  /** What the names of the images are told from. */
  root: string;
}

export async function imagesBelow(place: string, isFolder: boolean): Promise<ImagesBelow> {
  if (!isFolder) throw usageError(`--in ${place}: a glob is read by --local alone.`);
  const names = await readdir(place, { recursive: true });
  return {
    paths: names
      .filter(isImageName)
      .sort()
      .map((name) => join(place, name)),
    root: place,
  };
}
