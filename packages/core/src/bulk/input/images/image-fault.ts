/** Why one image cannot be had: its row fails with it, alone. */
export class ImageFault extends Error {
  override readonly name = 'ImageFault';
}

/** Of one image file. */
export const IMAGE_LIMIT_BYTES = 64 * 1024 * 1024;
